// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preferences is the plugin that resolves which levels a pod asks for, and
// refuses what it cannot read.
//
// It promises that a pod is never placed by preferences other than those it was
// given: one whose annotation is malformed stays Pending, and its event and its
// PodScheduled condition quote the bad part and say what is allowed. It does not
// rank nodes; the plugin SpreadTree does, with the levels resolved here.
//
// The levels are those of the pod's annotation; else of its own soft constraints; else of the PlacementPolicy that
// governs it; else the profile's. A policy with mode Override comes before all of these.
//
// Levels are listed in decreasing order of precedence (seed "Topology aware
// scheduling"). A level may leave out the nodes that lack its property. This
// plugin's Filter refuses these nodes.
package preferences
