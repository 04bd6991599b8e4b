// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocations reads Partitions and Allocations, and puts the pods of each partition in order by package
// pkg/placement/allocation. The scheduler, the controller and kubectl espalier share it, so that all three have the same order.
//
//	objects ──► Partition, Allocation ──► Tree: who is below whom ──► Arrange, with nodes and pods: the order of each partition
//
// What cannot be read has an error that says so, and stops no pods but its own. Nobody is evicted for it: a pod of an
// allocation that is not accepted is in no order, so that it neither makes way nor has anybody make way for it.
//
//   - decode.go, selector.go: what can be read of an object, and of a selector that cannot be
//   - partition.go, allocation.go: one object each
//   - tree.go: what holds for all of them together
//   - claim.go: which allocation a pod is of
//   - resources.go: by which resources the pods of a partition are ordered
//   - order.go: the pods of a partition in order
//   - place.go: where a pod is in it, and why it waits there
package allocations
