// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allocation puts all pods of a partition in one order: those that are to run first come first, and where capacity is
// short the last ones leave. Treadmill's scheduler orders like this.
//
// Each allocation reserves an amount for its pods, and may have allocations below it. Its pods are a queue of their own. A pod's
// utilization is how far the pods before it, and those together with it, are beyond what is reserved:
//
//	utilization = max over resources of (demand - reserved) / (reserved + size of the partition)
//
// It is negative within the reservation. The queues are merged from the leaves up, by rank and then by utilization, and the
// utilization is computed anew at each level. So what a child leaves unused of its reservation is its siblings' before it is
// anybody else's.
//
//	prod  reserved 4  [p1 p2 p3]   rank 100 - 3 within the reservation      p1 p2 | t1 t2 | p3 t3
//	test  reserved 4  [t1 t2 t3]   rank 100 - 1 within the reservation
//
// Four rules differ from Treadmill's code. Pods of priority 0 are the last of all, as its documentation says, and not the last of
// their rank (choice T-c). Pods of an allocation that has children are measured like those of a child. Utilization
// stays signed at every level (choice T-a): whoever shows it to people adds 1 at a leaf. And pods that must not be tried use up nothing:
// one that waits, beyond the maximum or for others of its group, neither moves back nor stops those that run.
//
//   - vector.go: amounts of several resources
//   - queue.go: the queue of one allocation's own pods
//   - order.go: their merge
package allocation
