// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "container/heap"

// nodeHeap and branchHeap keep the best member in front. A heap, not a sorted
// slice: a placement moves one node and one branch a level, by one step each.

type nodeHeap []*node

func (h nodeHeap) Len() int           { return len(h) }
func (h nodeHeap) Less(i, j int) bool { return compareNodes(h[i], h[j]) < 0 }
func (h nodeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

// Push is for container/heap; use add.
func (h *nodeHeap) Push(x any) {
	n := x.(*node)
	n.pos = len(*h)
	*h = append(*h, n)
}

// Pop is for container/heap; use drop.
func (h *nodeHeap) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return n
}

func (h *nodeHeap) add(n *node)  { heap.Push(h, n) }
func (h *nodeHeap) drop(n *node) { heap.Remove(h, n.pos) }
func (h *nodeHeap) fix(n *node)  { heap.Fix(h, n.pos) }
func (h *nodeHeap) init()        { heap.Init(h) }

type branchHeap []*branch

func (h branchHeap) Len() int           { return len(h) }
func (h branchHeap) Less(i, j int) bool { return compareBranches(h[i], h[j]) < 0 }
func (h branchHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

// Push is for container/heap; use add.
func (h *branchHeap) Push(x any) {
	b := x.(*branch)
	b.pos = len(*h)
	*h = append(*h, b)
}

// Pop is for container/heap; use drop.
func (h *branchHeap) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return b
}

func (h *branchHeap) add(b *branch)  { heap.Push(h, b) }
func (h *branchHeap) drop(b *branch) { heap.Remove(h, b.pos) }
func (h *branchHeap) fix(b *branch)  { heap.Fix(h, b.pos) }
func (h *branchHeap) init()          { heap.Init(h) }
