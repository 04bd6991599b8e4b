// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strconv"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Branch is a branch of the tree, or a node, as people see it: with the levels that paths
// leave out.
type Branch struct {
	// What it was divided from its siblings by: a level, or "node".
	What  string
	Label string
	// The pods that count there.
	Revision, Workload int32
	Pods               int64
	// State is what the filters said, and what is held against it.
	State string
	// Open says that something of it has not been refused.
	Open  bool
	Below []Branch // best first
}

// Outline returns all nodes as one branch. The first node below the first branches is the
// one that Next offers, as far as the filters have been asked.
func (v View) Outline() Branch {
	s := v.survey()
	all := s.figures(Branch{Label: "all"}, ^0)
	if len(s.Topology.groups[0].members) > 0 {
		all.Below = s.expand(division{}, ^0)
	}
	return all
}

// expand returns the branches below a member that is divided as d says, and by levels that
// all its nodes have one value at until it divides.
func (s *survey) expand(d division, member int32) []Branch {
	t := s.Topology
	if member < 0 && t.groups[^member].division == d {
		return s.below(^member)
	}
	if d.level == len(t.levels) { // the one node of a leaf
		return []Branch{s.node(member)}
	}
	p := t.part(t.value(t.anyNode(member), d.level), d)
	return []Branch{s.branch(d, p, p.label(), member)}
}

func (s *survey) below(id int32) []Branch {
	g := &s.Topology.groups[id]
	var all []Branch
	for _, r := range s.members(id) {
		if g.level == len(s.Topology.levels) {
			all = append(all, s.node(r.member))
			continue
		}
		p := s.Topology.part(s.Topology.value(s.Topology.anyNode(r.member), g.level), g.division)
		label := p.label()
		if s.Topology.levels[g.level].Share == level.Allocatable && r.share > 0 {
			label += fmt.Sprintf(", %.0f%% of CPU", 100*float64(r.share)/g.shareOfAll())
		}
		all = append(all, s.branch(g.division, p, label, r.member))
	}
	return all
}

// label names a part, with its weight.
func (p part) label() string {
	label := p.value
	if label == "" {
		label = "(no value)"
	}
	switch {
	case p.isLastResort():
		label += ", last resort"
	case p.share != 1:
		label += " x" + strconv.Itoa(int(p.share))
	}
	return label
}

// shareOfAll adds up the shares of all members.
func (g *group) shareOfAll() float64 {
	sum := 0.0
	for slot := range g.members {
		sum += float64(g.share(int32(slot)))
	}
	return sum
}

func (s *survey) branch(d division, p part, label string, member int32) Branch {
	what := s.Topology.levels[d.level].String()
	if d.others {
		what = "spread over the other values"
	}
	return s.figures(Branch{What: what, Label: label, Open: s.of(member).open > 0, Below: s.expand(p.below, member)}, member)
}

func (s *survey) node(node int32) Branch {
	e, n := s.Tally.entry(node), &s.Topology.nodes.all[node]
	return Branch{"node", n.name, e.Revision, e.Workload, n.Pods, s.nodeState(node, &e), !s.Feasibility.answers[node].refuses(), nil}
}

// anyNode returns a node below a member.
func (t *Topology) anyNode(member int32) int32 {
	for member < 0 {
		member = t.groups[^member].members[0]
	}
	return member
}

// figures has a branch show what is known of a member.
func (s *survey) figures(b Branch, member int32) Branch {
	sums := s.sums(member)
	b.Revision, b.Workload, b.Pods, b.State = sums.revision, sums.workload, s.of(member).pods, s.branchState(member, &sums)
	return b
}

// branchState says how many nodes a branch has to offer, and what is held against it.
func (s *survey) branchState(member int32, sums *sums) string {
	below := s.of(member)
	text := fmt.Sprintf("%d open", below.open)
	if below.notAsked > 0 {
		text += fmt.Sprintf(", %d not asked", below.notAsked)
	}
	stands := max(below.best, sums.history.asAWhole(s.Tally.rule.Threshold))
	switch {
	case below.open == 0:
	case stands.noneHealthy():
		text += ", none healthy"
	case stands == faultyAsAWhole:
		text += fmt.Sprintf(", %v (%d failures)", stands, sums.history.failures)
	case stands == onTrial:
		text += ", " + stands.String()
	}
	return text + unforgiven(sums.history.unforgiven)
}

func (s *survey) nodeState(node int32, e *entry) string {
	text := "not asked"
	switch a := s.Feasibility.answers[node]; {
	case a == fits:
		text = "fits"
	case a.refuses():
		text = "refused"
	}
	isUnready := s.Topology.nodes.all[node].Unready
	v := judge(&s.Tally.rule, &e.Record, isUnready)
	switch {
	case v.failures > 0:
		text += fmt.Sprintf(", faulty (%d failures)", v.failures)
	case v.health == onTrial:
		text += ", on trial"
	}
	if isUnready {
		text += ", not ready"
	}
	if s.Feasibility.soft(node) {
		text += ", soft"
	}
	return text + unforgiven(v.unforgiven)
}

// unforgiven says what may have broken a tie.
func unforgiven(failures int32) string {
	if failures == 0 {
		return ""
	}
	return fmt.Sprintf(", %d unforgiven", failures)
}
