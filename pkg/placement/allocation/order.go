// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"slices"
)

// Options change how allocations are ordered.
type Options struct {
	// RankPerLevel has each allocation give all pods below it a rank of its own, by its own reservation: as Treadmill's documentation has
	// it. Otherwise a pod keeps the rank that it has in its allocation, as in Treadmill's code (choice T-b).
	RankPerLevel bool
}

// Order returns all pods of a tree of allocations in their order. The size is what all nodes of the partition have, free or not.
//
// The answer depends on nothing but the tree: neither on the order of Pods or Children, nor on when pods were
// seen. It takes n log n for n pods at each level.
func Order(root *Allocation, size Vector, options Options) []Entry {
	queue, _ := root.queue(size, options, true)
	return queue
}

// queue merges the queues of an allocation and of its children, and returns what they reserve together.
func (a *Allocation) queue(size Vector, options Options, top bool) (queue []Entry, reserved Vector) {
	own := a.own()
	measure(own, a.Reserved, a.Reserved.Plus(size))
	if len(a.Children) == 0 {
		return own, a.Reserved
	}
	children := slices.Clone(a.Children)
	slices.SortFunc(children, func(b, c *Allocation) int { return cmp.Compare(b.Name, c.Name) })
	queues, reserved := [][]Entry{own}, a.Reserved
	for _, child := range children {
		its, more := child.queue(size, options, false)
		queues, reserved = append(queues, its), reserved.Plus(more)
	}
	queue = mergeAll(queues)
	measure(queue, reserved, reserved.Plus(size))
	if options.RankPerLevel && !top {
		a.rankAnew(queue)
	}
	return queue, reserved
}

// rankAnew gives all pods below an allocation the rank that its own would have.
func (a *Allocation) rankAnew(queue []Entry) {
	for i := range queue {
		e := &queue[i]
		if e.Rank = a.Rank; e.Class == Ordinary && e.Before < 0 {
			e.Rank -= a.Adjustment
		}
	}
}

// mergeAll merges queues, each of which keeps its order.
func mergeAll(queues [][]Entry) []Entry {
	if len(queues) == 1 {
		return queues[0]
	}
	return merge(mergeAll(queues[:len(queues)/2]), mergeAll(queues[len(queues)/2:]))
}

// merge takes the lesser of two heads, time and again. It does not sort: pods that request nothing have the utilization of the
// pod before them, and must stay where their priority has put them.
func merge(a, b []Entry) []Entry {
	merged := make([]Entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].compare(&b[0]) <= 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}
