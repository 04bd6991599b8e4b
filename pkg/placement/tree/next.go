// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "github.com/espalier-scheduler/espalier/pkg/placement"

// Next decides one pod: the node it goes to, or false if the filters refuse all
// of them. It counts nothing; whoever takes the node says Add.
//
// Every choice is first made as if all nodes not asked about would fit, and made
// again when one turns out not to. That is exact: a refusal can only make a
// branch less attractive, so what wins with its own answers known wins for good.
func (t *Tree) Next(fit placement.Fits) (string, bool) {
	n := t.next(fit)
	if n == nil {
		return "", false
	}
	return n.Name, true
}

// NextAhead is Next for who can ask about many nodes at once: ahead is told the nodes
// before fit is called for each of them, whenever it is about more than one.
func (t *Tree) NextAhead(fit placement.Fits, ahead func(names []string)) (string, bool) {
	t.ahead = ahead
	defer func() { t.ahead = nil }()
	return t.Next(fit)
}

// Place decides a batch of k pods, counting each: the nodes, in the order in which
// they were chosen. They are fewer than k if the room ends.
func (t *Tree) Place(k int, fit placement.Fits) []string {
	var placed []string
	for range k {
		n := t.next(fit)
		if n == nil {
			break
		}
		placed = append(placed, n.Name)
		t.add(n, placement.Tally{Revision: 1, Workload: 1, All: 1})
	}
	return placed
}

func (t *Tree) next(fit placement.Fits) *node {
	t.settle()
	for t.root.open > 0 {
		if n, certain := t.descend(fit); certain {
			return n
		}
	}
	return nil
}

// descend walks from the root to the best node. It is not certain of it when a
// filter refused a node on the way, which may have changed the order.
func (t *Tree) descend(fit placement.Fits) (n *node, certain bool) {
	b := t.root
	for !b.isLeaf() {
		best := b.children[0]
		if drawn(b.children) && !t.askAll(best, fit) {
			return nil, false
		}
		b = best
	}
	n = b.nodes.best()
	return n, t.ask(n, fit)
}

// drawn reports that the number of open nodes decides between the first branch
// and another, so that it has to be known for certain. Only the first branch's has:
// the others' can only fall.
func drawn(h siblings) bool {
	// In a heap the second best is a child of the best.
	for i := 1; i < len(h) && i <= 2; i++ {
		if compareLoad(h[0], h[i]) == 0 && h[0].open-h[0].unasked <= h[i].open {
			return true
		}
	}
	return false
}

// askAll asks the filters about every open node below b that they have not been
// asked about. It is false if they refused one.
func (t *Tree) askAll(b *branch, fit placement.Fits) bool {
	all := true
	nodes := b.takeUnasked(nil)
	t.lookAhead(nodes)
	for _, n := range nodes {
		n.queued = false
		if !t.ask(n, fit) {
			all = false
		}
	}
	return all
}

// lookAhead tells who wants to know which nodes will be asked about.
func (t *Tree) lookAhead(nodes []*node) {
	if t.ahead == nil || len(nodes) < 2 {
		return
	}
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if n.answer == unasked {
			names = append(names, n.Name)
		}
	}
	t.ahead(names)
}

// takeUnasked empties the lists of nodes to ask below b. It is done before the
// first question, because an answer moves branches about.
func (b *branch) takeUnasked(nodes []*node) []*node {
	if b.unasked == 0 {
		return nodes
	}
	nodes = append(nodes, b.toAsk...)
	clear(b.toAsk)
	b.toAsk = b.toAsk[:0]
	for _, c := range b.children {
		nodes = c.takeUnasked(nodes)
	}
	return nodes
}

// ask returns whether the filters allow a pod on n, from memory if they were asked before.
func (t *Tree) ask(n *node, fit placement.Fits) bool {
	switch {
	case n.answer != unasked:
	case fit(n.Name):
		// The node was open before and is so still. Only certainty has grown.
		n.answer, n.said = fits, fits
		for b := n.leaf; b != nil; b = b.parent {
			b.unasked--
		}
	default:
		n.change(func() { n.answer, n.said = refused, refused })
	}
	return n.answer == fits
}
