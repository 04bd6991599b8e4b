// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/pile"
)

// Worst returns the node that a pod of the revision should leave first for the tree to be even: at the first level that is not, it
// is in the highest branch, and there where most stand. It is false where none is better off elsewhere, as far as Misplaced tells.
func (v View) Worst() (node int32, ok bool) {
	c := count{View: v, byLevel: make([]int64, len(v.Topology.levels)+1)}
	id := int32(0)
	for {
		piles, below := c.branches(id)
		g := &v.Topology.groups[id]
		if worst, uneven := pile.Highest(piles, v.Topology.packs(g)); uneven {
			return v.fullest(g.members[worst]), true
		}
		// This level is even. Of the branches that are not even inside, the one that is worst at the first level.
		next := -1
		for i := range below {
			if slices.Max(below[i]) > 0 && (next < 0 || slices.Compare(below[i], below[next]) > 0) {
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
func (c *count) branches(id int32) (piles []pile.Pile, below [][]int64) {
	for slot, member := range c.Topology.groups[id].members {
		inside := count{View: c.View, byLevel: make([]int64, len(c.byLevel))}
		p := inside.pile(id, int32(slot), member)
		p.Takes = p.Takes && p.Share > 0
		piles = append(piles, p)
		below = append(below, inside.byLevel)
	}
	return piles, below
}

// fullest is the node below a member on which a pod stands highest: in the branch that has most for its share, and so on.
func (v View) fullest(member int32) int32 {
	for member < 0 {
		g := &v.Topology.groups[^member]
		best, most := none, pile.Pile{}
		for slot, m := range g.members {
			p := pile.Pile{Share: int64(g.share(int32(slot))), Pods: int64(v.sums(m).revision)}
			if p.Pods > 0 && (best == none || p.Higher(&most)) {
				best, most = int32(slot), p
			}
		}
		member = g.members[best]
	}
	return member
}
