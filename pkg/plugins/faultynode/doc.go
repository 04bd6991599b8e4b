// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultynode is the plugin that stays away from nodes on which a workload
// keeps failing.
//
// It promises that a node on which a revision has failed as often as the threshold
// says, within the window, comes after all others for that revision, and that a node
// on which it has only failed gets one unproven pod of it at a time. It excludes
// none: where there is no other place a pod still goes to a faulty node.
//
// It answers the seeds' rule of faulty nodes, by which SwarmKit does not feed one
// broken node all replacements of what breaks on it.
//
// In a profile with SpreadTree it tells the tree, through the cycle's state, how the
// nodes have fared, and the tree puts them last. Its own score serves profiles
// without, and breaks the tree's ties.
//
// What is known is in package faultcache.
//
//   - prefilter.go: PreFilter, which tells the other plugins of the cycle
//   - score.go: PreScore and Score
//   - reserve.go: Reserve and Unreserve
//   - events.go: what happens in the cluster that concerns it: nothing
package faultynode
