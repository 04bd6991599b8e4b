// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ordinal numbers the pods of a branch in the order in which they came, so that the last one is the first to
// go. A branch needs to know nothing of the others: each pod came to the branch that was lowest, so to take
// the latest away undoes the spread step by step.
//
//   - ordinal.go: one pod's number, its deletion cost and its spelling
//   - set.go: the numbers that a branch has given
//   - repair.go: the numbers of a branch of which some are missing
package ordinal
