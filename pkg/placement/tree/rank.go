// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"slices"
)

// survey is what all members of all groups are to one view: for ranking and drawing, which
// look at all nodes. It is found without classes, masks and sets, so that these can be
// held against it.
type survey struct {
	View
	groups []surveyed
}

// surveyed is what the nodes below a member add up to.
type surveyed struct {
	open, notAsked int32
	pods           int64
	// best is the best health of an open node, or of any if none is open.
	best health
}

func (v View) survey() *survey {
	s := &survey{v, make([]surveyed, len(v.Topology.groups))}
	for id := len(s.groups) - 1; id >= 0; id-- {
		is := surveyed{best: unready}
		for slot, member := range v.Topology.groups[id].members {
			part, health := s.of(member), s.member(&v.Topology.groups[id], int32(slot)).health
			switch {
			case (part.open > 0) == (is.open > 0):
				is.best = min(is.best, health)
			case part.open > 0:
				is.best = health
			}
			is.open += part.open
			is.notAsked += part.notAsked
			is.pods += part.pods
		}
		s.groups[id] = is
	}
	return s
}

// of returns what is below a member of a group.
func (s *survey) of(member int32) surveyed {
	if member < 0 {
		return s.groups[^member]
	}
	is, a := surveyed{best: s.nodeHealth(member)}, s.Feasibility.answers[member]
	is.open = oneIf(!a.refuses())
	is.notAsked = oneIf(a == unasked || a&outdated != 0)
	if n := &s.Topology.nodes.all[member]; !n.Unready {
		is.pods = n.Pods
	}
	return is
}

func (v View) nodeHealth(node int32) health {
	if v.Topology.nodes.all[node].Unready {
		return unready
	}
	e := v.Tally.entry(node)
	return judge(&v.Tally.rule, &e.Record, false).health
}

// ranked is a member of a group with all that it is compared by.
type ranked struct {
	key
	member, slot int32
	closed       bool
	load         uint64
}

func (s *survey) member(g *group, slot int32) ranked {
	member := g.members[slot]
	below := s.of(member)
	return ranked{key: s.memberKey(g, slot, below.best), member: member, slot: slot, closed: below.open == 0, load: s.after(g, slot)}
}

// memberKey is the key of a member whose best node has a health.
func (v View) memberKey(g *group, slot int32, best health) key {
	member := g.members[slot]
	if g.leaf {
		e := v.Tally.entry(member)
		k := v.Tally.nodeKey(member, &e)
		k.health, k.soft = best, v.Feasibility.soft(member)
		return k
	}
	sums := v.sums(member)
	k := branchKey(&sums, g.share(slot))
	k.health = max(best, sums.history.asAWhole(v.Tally.rule.Threshold))
	k.soft = member >= 0 && v.Topology.ofNodes(g) && v.Feasibility.soft(member)
	return k
}

// members returns those of a group, best first and closed ones last.
func (s *survey) members(id int32) []ranked {
	g := &s.Topology.groups[id]
	all := make([]ranked, len(g.members))
	for slot := range all {
		all[slot] = s.member(g, int32(slot))
	}
	packs := s.Topology.packs(g)
	slices.SortStableFunc(all, func(a, b ranked) int { return a.compare(&b, packs, true) })
	return all
}

// compare orders members as choose does, up to their values.
func (r *ranked) compare(o *ranked, packs, byLoad bool) int {
	switch {
	case !r.closed && o.closed:
		return -1
	case r.closed && !o.closed:
		return 1
	}
	if c := r.key.compare(&o.key, packs); c != 0 || !byLoad {
		return c
	}
	return cmp.Compare(r.load, o.load)
}

// Ranked is a node's position among all that fit.
type Ranked struct {
	Node int32
	// Class numbers the classes of equals, 0 for the best: see Rank.
	Class int
}

// Rank returns the nodes that the filters have not refused, best class first. They should
// have been asked about all of them.
//
// Two nodes of a leaf are equals if nothing but their names tells them apart. Two
// branches are equals likewise, and then it is all the same which of them gets
// the pod, as long as it goes to the best place inside: the best class of one and
// the best class of the other are one class, and so on with the second. What lies
// deeper is not compared across branches. A node is in the best class if and only if
// Next might choose it under other names, and Next's own choice comes first.
//
// Without byLoad, nodes and branches that only their loads tell apart are equals too:
// for pods that have preferences of their own, which are to break ties before load does.
func (v View) Rank(byLoad bool) []Ranked {
	s := v.survey()
	var all []Ranked
	for class, nodes := range s.rankInTurn(s.classes(0, byLoad), byLoad) {
		for _, n := range nodes {
			all = append(all, Ranked{n, class})
		}
	}
	return all
}

// classes returns the open nodes below a group by class, best first.
func (s *survey) classes(id int32, byLoad bool) [][]int32 {
	packs := s.Topology.packs(&s.Topology.groups[id])
	var all [][]int32
	members := slices.DeleteFunc(s.members(id), func(r ranked) bool { return r.closed })
	for len(members) > 0 {
		equals := 1
		for equals < len(members) && members[0].compare(&members[equals], packs, byLoad) == 0 {
			equals++
		}
		var merged [][]int32
		for _, r := range members[:equals] {
			below := [][]int32{{r.member}}
			if r.member < 0 {
				below = s.classes(^r.member, byLoad)
			}
			for i, nodes := range below {
				if i == len(merged) {
					merged = append(merged, nil)
				}
				merged[i] = append(merged[i], nodes...)
			}
		}
		all = append(all, merged...)
		members = members[equals:]
	}
	return all
}
