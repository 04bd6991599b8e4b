// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"github.com/espalier-scheduler/espalier/pkg/placement/members"
)

// View is the nodes as one pod sees them: a topology, what the filters have answered for its
// needs, and the tally of its revision. It is a value, and costs nothing to make. None of
// the three may be stale.
type View struct {
	Topology    *Topology
	Feasibility *Feasibility
	Tally       *Tally
	// Turn is that of the pod, nil for most.
	Turn *Turn
}

// Fit asks the filters about one more pod on a node. Where they refuse it, for a reason
// below MaxReasons.
type Fit func(node int32) (fits bool, reason int)

// Next decides one pod: the node it goes to, or false if the filters refuse all of
// them. It counts nothing.
//
// It asks about the best of the nodes that have not been refused, and about the next
// best if that one is. Nothing else is asked: no choice between branches depends on more
// than whether there is an open node, and a refusal can only make a branch less
// attractive.
func (v View) Next(fit Fit) (node int32, ok bool) {
	m := v.Feasibility.mask(v.Topology)
	if node, ok = v.nextInTurn(m, fit); ok {
		return node, true
	}
	if node, ok = v.nextBelow(m, ^0, fit); ok {
		return node, true
	}
	return v.nextBelow(v.Feasibility.newMask(v.Topology, true), ^0, fit)
}

// nextBelow decides among the open nodes below a member of a group.
func (v View) nextBelow(m *mask, member int32, fit Fit) (int32, bool) {
	f := v.Feasibility
	for m.anyBelow(member) {
		node := v.descend(m, member)
		if !f.Allowed(node) && !f.Refused(node) {
			if ok, reason := fit(node); ok {
				f.Allow(node)
			} else {
				f.Refuse(node, reason)
			}
		}
		if f.Allowed(node) {
			return node, true
		}
		m.set(node, false)
	}
	return none, false
}

// descend walks from a member of a group to the best open node below it.
func (v View) descend(m *mask, member int32) int32 {
	for member < 0 {
		g := &v.Topology.groups[^member]
		member = g.members[v.choose(m, ^member, m.of(g))]
	}
	return member
}

// choose returns the best of the open members of a group, none if none is.
func (v View) choose(m *mask, id int32, open []uint64) int32 {
	g := &v.Topology.groups[id]
	if m.soft == nil || !v.Topology.ofNodes(g) {
		best, _ := v.best(m, id, open)
		return best
	}
	others, soft := v.Feasibility.divided(m, g, open)
	best, k := v.best(m, id, others)
	if best != none && k.health == free && k.failures == 0 {
		return best
	}
	softBest, softKey := v.best(m, id, soft)
	if softKey.soft = true; best == none || softBest != none && softKey.compare(&k, v.Topology.packs(g)) < 0 {
		return softBest
	}
	return best
}

// best returns the best of the open members of a group, none if none is.
func (v View) best(m *mask, id int32, open []uint64) (int32, key) {
	g := &v.Topology.groups[id]
	b := v.Tally.branches[id]
	if b == nil {
		b = &untouched
	}
	packs := v.Topology.packs(g)
	best, bestKey := v.listed(g, b, open, packs)
	for at, word := range b.apart.Words() {
		members.Each(at, word&open[at], func(slot int32) {
			k := v.apartKey(m, g, slot)
			if best != none {
				if c := k.compare(&bestKey, packs); c > 0 || c == 0 && !v.before(g, slot, best) {
					return
				}
			}
			best, bestKey = slot, k
		})
	}
	return best, bestKey
}

// listed returns the best open member that is not apart, none if there is none. It goes
// through the classes of those that tie in the order of their keys, and in between through
// those that are in no class, which tie if their shares are the same.
func (v View) listed(g *group, b *branch, open []uint64, packs bool) (best int32, k key) {
	others := g.byShare
	if g.shares == nil {
		others = equalShares
	}
	for at, i := 0, 0; at < len(b.classes) || i < len(others); {
		order := 1
		if i < len(others) {
			k = key{share: others[i].share}
			order = -1
		}
		if at < len(b.classes) {
			if order > 0 || b.classes[at].key.compare(&k, packs) < 0 {
				k, order = b.classes[at].key, 1
			} else if b.classes[at].key.compare(&k, packs) == 0 {
				order = 0
			}
		}
		among := members.Tied{Listed: &b.listed}
		if order >= 0 {
			among.Class = &b.classes[at].members
			at++
		}
		if order <= 0 {
			among.Fresh, among.Of = true, others[i].members
			i++
		}
		if best = v.least(g, open, &among); best != none {
			return best, k
		}
	}
	return none, key{}
}

// apartKey is the key of a branch with failures below it, by what is open there.
func (v View) apartKey(m *mask, g *group, slot int32) key {
	s := v.sums(g.members[slot])
	k := branchKey(&s, g.share(slot))
	k.health = v.health(m, g.members[slot])
	return k
}

// sums returns those of a member of a group.
func (v View) sums(member int32) sums {
	if member >= 0 {
		e := v.Tally.entry(member)
		return v.Tally.part(member, &e)
	}
	if b := v.Tally.branches[^member]; b != nil {
		return b.sums
	}
	return sums{}
}

// health is that of a branch with an open node: that of the best of them, or worse if its
// failures as a whole say so. All nodes that are not ready are alike.
func (v View) health(m *mask, member int32) health {
	s := v.sums(member)
	if m.unready || s.marked == 0 {
		return free
	}
	whole := s.history.asAWhole(v.Tally.rule.Threshold)
	if member >= 0 {
		e := v.Tally.entry(member)
		return max(whole, judge(&v.Tally.rule, &e.Record, false).health)
	}
	return max(whole, v.bestHealth(m, ^member))
}

// bestHealth is that of the best open member of a group.
func (v View) bestHealth(m *mask, id int32) health {
	g := &v.Topology.groups[id]
	b, open := v.Tally.branches[id], m.of(g)
	if b == nil {
		b = &untouched
	}
	if member, k := v.listed(g, b, open, v.Topology.packs(g)); member != none && k.health == free {
		return free
	} else if member != none && g.leaf {
		return k.health
	}
	best := unready
	for at, word := range b.apart.Words() {
		members.Each(at, word&open[at], func(slot int32) {
			best = min(best, v.health(m, g.members[slot]))
		})
	}
	return best
}
