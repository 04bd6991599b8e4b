// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// node is a node in its leaf.
type node struct {
	placement.Node
	leaf   *branch
	answer answer
	queued bool // in leaf.toAsk
	pos    int  // in leaf.nodes
}

// answer is what the filters said of a node since it last changed.
type answer uint8

const (
	// unasked: not asked yet. Such a node counts as one that fits.
	unasked answer = iota
	fits
	refused
)

// sound reports that a node is neither faulty nor unready.
func (n *node) sound() bool { return n.Failures == 0 && !n.Unready }

// change makes a change to a node, and puts it and the branches above in their places.
func (n *node) change(do func()) {
	n.leaf.account(n, -1)
	do()
	n.leaf.account(n, +1)
	n.leaf.nodes.fix(n.pos)
	n.leaf.settle()
}

// marks are n's contributions to a branch's open, healthy and unasked.
func (n *node) marks() (open, healthy, notAsked int) {
	if n.answer == refused {
		return 0, 0, 0
	}
	open = 1
	if n.sound() {
		healthy = 1
	}
	if n.answer == unasked {
		notAsked = 1
	}
	return open, healthy, notAsked
}

// compareNodes orders the nodes of a leaf, best first.
func compareNodes(a, b *node) int {
	if c := compareNodeMerits(a, b); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// compareNodeMerits is compareNodes up to the name.
func compareNodeMerits(a, b *node) int {
	if c := cmp.Or(
		firstIf(a.answer != refused, b.answer != refused),
		firstIf(!a.Unready, !b.Unready),
	); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(a.Failures, b.Failures),
		cmp.Compare(a.Tally.Revision, b.Tally.Revision),
		cmp.Compare(a.Tally.Workload, b.Tally.Workload),
		cmp.Compare(a.Tally.All, b.Tally.All),
	)
}

func (n *node) compare(o *node) int { return compareNodes(n, o) }
func (n *node) stand(at int)        { n.pos = at }
