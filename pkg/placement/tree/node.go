// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "github.com/espalier-scheduler/espalier/pkg/placement"

// node is a node in its leaf.
type node struct {
	placement.Node
	verdict
	answer answer
	// said is the last answer, also when it is to be asked for again; Set forgets it. It
	// decides nothing but what is misplaced.
	said   answer
	queued bool // in leaf.toAsk
	leaf   *branch
	slot   int32 // in leaf.nodes
}

// answer is what the filters said of a node since it last changed.
type answer uint8

const (
	// unasked: not asked yet. Such a node counts as one that fits.
	unasked answer = iota
	fits
	refused
)

// change makes a change to a node, and puts it and the branches above in their places.
func (n *node) change(do func()) {
	n.recount(do)
	n.leaf.nodes.renew(n)
	n.leaf.settle()
}

// recount makes a change to a node, and has the branches above add up again. The
// heaps are out of order until they are settled.
func (n *node) recount(do func()) {
	before := n.sums()
	do()
	n.verdict = n.judge()
	d := n.sums()
	d.add(&before, -1)
	n.leaf.account(&d, +1)
	n.queue()
}

// account adds n (by 1) to the branches above, or takes it away (by -1).
func (n *node) account(by int) {
	s := n.sums()
	n.leaf.account(&s, by)
}

// queue sees to it that a node is among those to ask, if it is unasked.
func (n *node) queue() {
	if n.answer == unasked && !n.queued {
		n.queued = true
		n.leaf.toAsk = append(n.leaf.toAsk, n)
	}
}

// sums are n's part in those of the branches above.
func (n *node) sums() sums {
	s := sums{history: n.history(), all: 1, open: oneIf(n.answer != refused), unasked: oneIf(n.answer == unasked)}
	if !n.Unready {
		s.tally = n.Tally
	}
	return s
}
