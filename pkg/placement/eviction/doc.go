// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eviction finds the pods that make way for one that comes before them in the order of a partition.
//
// They are looked for from the end of the order, as in Treadmill: the last pods are taken away one after the other, until the
// preemptor fits on the node of the one that was taken away last. Then all are put back in the order in which they stand, as far as
// the preemptor still fits. Those that cannot be put back are the victims (TV12, TV13). Treadmill puts pods back after it has stopped
// them. A pod of Kubernetes cannot be put back, so all of this is tried out before anything is evicted.
//
//	p wants 5   node-1: s1(1) l1(8)    node-2: s2(1) l2(8)
//	the order is  p  l1 l2  s1 s2      taken away: s2, s1, l2. p fits on node-2 then
//	put back:  l2 does not fit beside p, s1 does, s2 does.    The victim is l2.
//
// So no pod before the preemptor is ever touched, and nobody is evicted unless the preemptor then fits.
//
//   - walk.go: for one pod
//   - group.go: for pods that are placed together
//   - budget.go: disruption budgets
//   - made.go: who made way for whom, which is not turned round
//   - failed.go: what need not be tried again
package eviction
