// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "github.com/espalier-scheduler/espalier/pkg/placement/pile"

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
	piles   []pile.Pile // of the groups on the way to the one at hand, and then its own
}

// below counts in a group, and reports whether a node below it takes pods.
func (c *count) below(id int32) (takes bool) {
	g := &c.Topology.groups[id]
	first := len(c.piles)
	for slot, member := range g.members {
		p := c.pile(id, int32(slot), member)
		takes = takes || p.Takes
		p.Takes = p.Takes && p.Share > 0 // a last resort has pods too many as soon as another has room
		c.piles = append(c.piles, p)
	}
	piles := c.piles[first:]
	// A virtual branch divides by the same level as the one that it is in.
	if c.Topology.packs(g) {
		c.byLevel[g.level] += pile.Strewn(piles)
	} else {
		c.byLevel[g.level] += pile.Uneven(piles)
	}
	c.piles = c.piles[:first]
	return takes
}

// pile counts in a member of a group, and returns what stands there. A last resort takes pods, where nothing else does.
func (c *count) pile(id, slot, member int32) pile.Pile {
	p := pile.Pile{Share: int64(c.Topology.groups[id].share(slot))}
	if member < 0 {
		p.Takes = c.below(^member)
	} else {
		p.Takes = c.takes(member)
	}
	s := c.sums(member)
	p.Pods = int64(s.revision)
	p.Takes = p.Takes && s.history.asAWhole(c.Tally.rule.Threshold) == free
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
