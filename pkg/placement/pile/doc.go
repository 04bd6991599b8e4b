// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pile counts the pods that stand in the wrong one of some siblings: the branches of one level, or the nodes
// of a leaf.
package pile
