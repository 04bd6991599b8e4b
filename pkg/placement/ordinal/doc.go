// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ordinal numbers the pods of a branch in the order in which they came, so that the last one is the first to
// go. The numbers of a branch do not depend on other branches. Each pod was placed in the branch that had the fewest
// pods for its share, so removing the pods with the highest numbers first undoes the spread step by step.
//
//   - ordinal.go: one pod's number, its deletion cost and its spelling
//   - set.go: the numbers that a branch has given
//   - repair.go: the numbers of a branch of which some are missing
package ordinal
