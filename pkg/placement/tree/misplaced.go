// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"container/heap"
	"slices"
)

// Misplaced counts the pods of the revision that would have to move for the tree to be
// even, by level: the first level first, and the nodes inside the last as one more. A
// level is judged inside each branch for itself, so that a pod which is in the wrong
// zone is not counted again for the rack it has there.
//
// A node can take pods if the filters allowed the last pod that they were asked about,
// or have not been asked since the node changed and it has pods already; and unless there
// are failures that keep pods from it, or it is soft. A branch can if a node below it can. So a node that
// is refused to all pods is no place that some are missing from, and an empty one that
// nobody has asked about is none yet. How many pods a node can take nobody has been
// asked, so the count is an upper bound where little room is left. An even tree costs one
// look at each branch and node, an uneven one a step in two heaps for every pod that is counted.
//
// Without a Feasibility, a node takes pods if it has pods of the revision already.
func (v View) Misplaced() []int64 {
	c := count{View: v, byLevel: make([]int64, len(v.Topology.levels)+1)}
	c.below(0)
	return c.byLevel
}

// count is a count of misplaced pods.
type count struct {
	View
	byLevel []int64
	piles   []pile // of the groups on the way to the one at hand, and then its own
}

// below counts in a group, and reports whether a node below it takes pods.
func (c *count) below(id int32) (takes bool) {
	g := &c.Topology.groups[id]
	first := len(c.piles)
	for slot, member := range g.members {
		p := c.pile(id, int32(slot), member)
		takes = takes || p.takes
		p.takes = p.takes && p.share > 0 // a last resort has pods too many as soon as another has room
		c.piles = append(c.piles, p)
	}
	piles := c.piles[first:]
	// A virtual branch divides by the same level as the one that it is in.
	if c.Topology.packs(g) {
		c.byLevel[g.level] += strewn(piles)
	} else {
		c.byLevel[g.level] += uneven(piles)
	}
	c.piles = c.piles[:first]
	return takes
}

// pile counts in a member of a group, and returns what stands there. A last resort takes pods, where nothing else does.
func (c *count) pile(id, slot, member int32) pile {
	p := pile{share: int64(c.Topology.groups[id].share(slot))}
	if member < 0 {
		p.takes = c.below(^member)
	} else {
		p.takes = c.takes(member)
	}
	s := c.sums(member)
	p.pods = int64(s.revision)
	p.takes = p.takes && s.history.asAWhole(c.Tally.rule.Threshold) == free
	return p
}

// takes reports whether the filters would allow a pod on a node, as far as that is known,
// and nothing is held against it. What they said holds beyond the cycle in which they were
// asked: most of what they refuse they refuse to every pod, and are asked about it anew for each.
func (c *count) takes(node int32) bool {
	e := c.Tally.entry(node)
	if c.Topology.nodes.all[node].Unready || judge(&c.Tally.rule, &e.Record, false).health != free {
		return false
	}
	said := unasked
	if c.Feasibility != nil {
		if c.Feasibility.soft(node) {
			return false
		}
		said = c.Feasibility.last(node)
	}
	return said == fits || said == unasked && e.Revision > 0
}

// pile is the pods of one branch among its siblings, or of a node among those of its leaf. A last resort has
// share 0, by which every pod of it is higher than any other.
type pile struct {
	pods, share int64
	takes       bool
}

// last is the height of the highest pod, and next that of one pod more, both times the share: the
// n-th pod is at (2 * n - 1) / share, see comparePods.
func (p *pile) last() int64 { return 2*p.pods - 1 }
func (p *pile) next() int64 { return 2*p.pods + 1 }

// higher reports that one pod is better off on q than on p.
func (p *pile) higher(q *pile) bool { return p.last()*q.share > q.next()*p.share }

// strewn counts the pods outside of the fullest pile that takes more.
func strewn(piles []pile) int64 {
	var sum, fullest int64
	for _, p := range piles {
		if p.takes {
			sum += p.pods
			fullest = max(fullest, p.pods)
		}
	}
	return sum - fullest
}

// uneven counts the pods that go from the highest pile to the lowest, one by one, until
// none is better off. No pile both gives and takes: what is lowest once is, with one pod
// more, no higher than what is highest then.
func uneven(piles []pile) int64 {
	high, low := extremes(piles)
	if low == nil || !high.higher(low) {
		return 0
	}
	from := pileHeap{piles: slices.Clone(piles), before: func(p, q *pile) bool { return p.last()*q.share > q.last()*p.share }}
	to := pileHeap{
		piles:  slices.DeleteFunc(piles, func(p pile) bool { return !p.takes }),
		before: func(p, q *pile) bool { return p.next()*q.share < q.next()*p.share },
	}
	heap.Init(&from)
	heap.Init(&to)
	moves := int64(0)
	for from.piles[0].higher(&to.piles[0]) {
		from.piles[0].pods--
		to.piles[0].pods++
		heap.Fix(&from, 0)
		heap.Fix(&to, 0)
		moves++
	}
	return moves
}

// extremes returns the highest pile and the lowest of those that take pods, nil if there is none.
func extremes(piles []pile) (high, low *pile) {
	for i := range piles {
		p := &piles[i]
		if high == nil || p.last()*high.share > high.last()*p.share {
			high = p
		}
		if p.takes && (low == nil || p.next()*low.share < low.next()*p.share) {
			low = p
		}
	}
	return high, low
}

// pileHeap is piles, the first of them in front. Their number stays as it is.
type pileHeap struct {
	piles  []pile
	before func(p, q *pile) bool
}

func (h *pileHeap) Len() int           { return len(h.piles) }
func (h *pileHeap) Less(i, j int) bool { return h.before(&h.piles[i], &h.piles[j]) }
func (h *pileHeap) Swap(i, j int)      { h.piles[i], h.piles[j] = h.piles[j], h.piles[i] }

// Push and Pop are never called: no pile comes or goes while pods move.
func (h *pileHeap) Push(any) {}

// Pop is what heap.Interface asks for beside Push.
func (h *pileHeap) Pop() any { return nil }
