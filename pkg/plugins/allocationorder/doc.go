// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocationorder is the plugin that has the pods of each Partition placed in one order, by its Allocations, and those at the end of
// it leave where capacity is short. Pods of no allocation are ordered and placed as without it.
//
// It promises that no pod makes way for one that comes after it, nor for one that does not fit then; that pods of an allocation run on
// the nodes of its partition alone; and that nobody waits or leaves because of a Partition or Allocation that cannot be
// read, but the pods that it claims, which wait.
//
//	queue ──► PreEnqueue: the first so many ──► PreFilter, Filter: the partition ──► PostFilter: who makes way ──► Reserve: identity
//
// It is the only plugin that orders the queue of a configuration that has it: all profiles of one have the same. What it knows of the
// order, and of who made way for whom, is in package internal/tenants, which its profiles share.
//
//   - queue.go: PreEnqueue, QueueSort
//   - filter.go: PreFilter, Filter; events.go: what makes them change their mind
//   - reserve.go: a pod is about to be bound, with its identity
//   - nominated.go: places that others have made for a pod
//   - postfilter.go: PostFilter for a pod; group.go: and for a group of them
//   - world.go: what is tried out on the snapshot; budgets.go: disruption budgets
//   - evict.go: pods are evicted
package allocationorder
