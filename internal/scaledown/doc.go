// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaledown sees to it that what is left of a workload is even when some of its pods are removed. Each controller has its
// own order in which it removes them:
//
//   - A ReplicaSet removes those with the lowest deletion cost first. A pod's cost comes from its number in its branch of the
//     first level, see package ordinal.
//   - A StatefulSet removes the highest index first. So the index says to which branch a pod goes, counted from
//     the first one of the set, see tree.Turn.
//   - A Job removes the youngest first, and nothing is to be done.
//
// Nothing is remembered that is not on the pods: a pod is bound with its number, and the next scheduler reads it there.
//
//   - cache.go: the numbers of the controllers whose pods are placed now
//   - owner.go: those of one controller, by branch
//   - pod.go: what a pod has of a number, and whether it is ours
package scaledown
