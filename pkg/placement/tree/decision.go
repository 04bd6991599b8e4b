// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
)

// Decision says how a node compares with what else could have been chosen on the way down to it. It is for before the pod is counted,
// and may be asked about any node of the topology: of one that Next would not choose it says which comes before it.
func (v View) Decision(node int32) []decision.Step {
	m := v.Feasibility.mask(v.Topology)
	if v.Topology.nodes.all[node].Unready {
		m = v.Feasibility.newMask(v.Topology, true)
	}
	var steps []decision.Step
	for at := v.Topology.where[node]; at.group != none; {
		g := &v.Topology.groups[at.group]
		steps = append(steps, v.step(m, at))
		at = place{g.parent, g.slot}
	}
	slices.Reverse(steps)
	return steps
}

// step is the choice of a member of a group.
func (v View) step(m *mask, at place) decision.Step {
	g := &v.Topology.groups[at.group]
	is := v.judged(m, g, at.slot)
	s := decision.Step{Level: v.Topology.levelOf(g), Chosen: v.option(g, at.slot, &is)}
	open := slices.Clone(m.of(g))
	open[at.slot/64] &^= 1 << (at.slot % 64)
	next := v.choose(m, at.group, open)
	if next == none {
		return s
	}
	k := v.judged(m, g, next)
	s.Next = v.option(g, next, &k)
	switch c := is.compare(&k, v.Topology.packs(g)); {
	case c < 0:
		s.Relation = decision.Before
	case c == 0:
		s.Relation = decision.Tied
	default:
		s.Relation = decision.InsteadOf
	}
	return s
}

// judged is the key of a member with its health.
func (v View) judged(m *mask, g *group, slot int32) key {
	if member := g.members[slot]; !g.leaf {
		return v.memberKey(g, slot, v.health(m, member))
	}
	return v.memberKey(g, slot, v.nodeHealth(g.members[slot]))
}

// levelOf names what a group divides by.
func (t *Topology) levelOf(g *group) string {
	if g.leaf {
		return decision.Node
	}
	key := t.levels[g.level].Property.String()
	if short := path.Base(key); short != decision.Node {
		return short
	}
	return key
}

// option is a member in words.
func (v View) option(g *group, slot int32, k *key) decision.Option {
	o := decision.Option{Name: decision.NoValue, Revision: k.revision, Workload: k.workload, State: k.state()}
	if g.leaf {
		o.Name = v.Topology.Name(g.members[slot])
	} else if g.values[slot] != "" {
		o.Name = g.values[slot]
	}
	return o
}

// state is what is held against a member.
func (k *key) state() string {
	var all []string
	if k.health != free {
		all = append(all, k.health.String())
	}
	if n := max(k.failures, k.unforgiven); n > 0 {
		all = append(all, fmt.Sprintf("failures: %d", n))
	}
	if k.soft {
		all = append(all, "soft taint")
	}
	if k.share == 0 {
		all = append(all, "last resort")
	}
	return strings.Join(all, ", ")
}
