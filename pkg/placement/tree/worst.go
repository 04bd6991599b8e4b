// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "slices"

// Worst returns the node that a pod of the revision should leave first for the tree to be even: at the first level that is not, it
// is in the highest branch, and there where most stand. It is false where none is better off elsewhere, as far as Misplaced tells.
func (v View) Worst() (node int32, ok bool) {
	c := count{View: v, byLevel: make([]int64, len(v.Topology.levels)+1)}
	id := int32(0)
	for {
		piles, below := c.branches(id)
		g := &v.Topology.groups[id]
		if worst, uneven := highest(piles, v.Topology.packs(g)); uneven {
			return v.fullest(g.members[worst]), true
		}
		// This level is even. Of the branches that are not even inside, the one that is worst at the first level.
		next := -1
		for i := range below {
			if some(below[i]) && (next < 0 || slices.Compare(below[i], below[next]) > 0) {
				next = i
			}
		}
		if next < 0 {
			return none, false
		}
		id = ^g.members[next]
	}
}

// branches are the piles of a group's members, with what is misplaced below each.
func (c *count) branches(id int32) (piles []pile, below [][]int64) {
	for slot, member := range c.Topology.groups[id].members {
		inside := count{View: c.View, byLevel: make([]int64, len(c.byLevel))}
		p := inside.pile(id, int32(slot), member)
		p.takes = p.takes && p.share > 0
		piles = append(piles, p)
		below = append(below, inside.byLevel)
	}
	return piles, below
}

// highest is the pile that gives a pod first, and whether the pod is better off in another.
func highest(piles []pile, packs bool) (at int, uneven bool) {
	fullest, lowest, at := -1, -1, -1
	for i := range piles {
		p := &piles[i]
		if p.takes && (fullest < 0 || p.pods > piles[fullest].pods) {
			fullest = i
		}
		if p.takes && (lowest < 0 || p.next()*piles[lowest].share < piles[lowest].next()*p.share) {
			lowest = i
		}
	}
	for i := range piles {
		p := &piles[i]
		switch {
		case p.pods == 0:
		case packs && i != fullest && p.takes && (at < 0 || p.pods < piles[at].pods):
			at = i
		case !packs && (at < 0 || p.last()*piles[at].share > piles[at].last()*p.share):
			at = i
		}
	}
	if at < 0 || lowest < 0 {
		return 0, false
	}
	return at, packs || piles[at].higher(&piles[lowest])
}

// fullest is the node below a member on which a pod stands highest: in the branch that has most for its share, and so on.
func (v View) fullest(member int32) int32 {
	for member < 0 {
		g := &v.Topology.groups[^member]
		best, most := none, pile{}
		for slot, m := range g.members {
			p := pile{share: int64(g.share(int32(slot))), pods: int64(v.sums(m).revision)}
			if p.pods > 0 && (best == none || p.last()*most.share > most.last()*p.share) {
				best, most = int32(slot), p
			}
		}
		member = g.members[best]
	}
	return member
}

func some(misplaced []int64) bool {
	return slices.ContainsFunc(misplaced, func(n int64) bool { return n > 0 })
}
