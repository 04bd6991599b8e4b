// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fastpath lets a scheduler's profiles take the node that a plugin proposes,
// where the framework would filter and score all of them.
//
//	              ┌─ full path: filter all nodes, score those that fit ─┐
//	PreFilter ──► hint                                                  ├─► Reserve ──► bind
//	              └─ the best node of the tree, then the next … fits ───┘
//
// The framework asks every profile for a hint after PreFilter, runs the filters on the
// node it is given, and takes it if they pass; the full path is for all else. So a
// hint can be wrong in one way only: it can name a node that fits and is not among
// the best. What would make it so has no hint:
//
//   - pods that the plugin does not place, and those that have preferences of their
//     own: scoring is for them
//   - pods nominated for a node, of which the scheduler tries that first
//   - pods placed as a group, which may be confined to some of the nodes, as are those
//     that a PreFilter plugin confined
//   - profiles whose other scorers may outvote the plugin, or that have extenders
//
// Diagnosis and preemption are the full path's: where no node fits there is no hint. What
// it came to is remembered, and the next pod like it is told the same at once.
//
// The framework offers no way to give it a source of hints, so profiles are wrapped,
// before the scheduler runs.
//
//   - wrap.go: which profiles are wrapped
//   - profile.go: the wrapped profile
//   - filters.go: whose answers may be remembered
//   - metrics.go: what became of the hints
package fastpath
