// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// String draws the tree: its levels, then every branch and node, best first, with
// the pods that count there and what the filters said. The first node under the
// first branches is the one that Next offers, as far as the filters have been asked.
func (v View) String() string {
	s := v.survey()
	d := drawing{}
	d.row("all", s.branchFigures(^0))
	d.limbs(s.root(), "")
	return v.heading() + d.table()
}

// heading is the levels in words, one after the other.
func (v View) heading() string {
	words := make([]string, 0, len(v.Topology.levels)+1)
	for _, l := range v.Topology.levels {
		words = append(words, l.String())
	}
	return strings.Join(append(words, "then nodes"), ", ") + "\n"
}

// limb is a branch or a node as it is drawn: with the levels that paths leave out.
type limb struct {
	what    string // the level by which it was divided from its siblings
	label   string
	figures figures
	open    bool
	below   []limb // best first
}

// root returns the limbs below all nodes.
func (s *survey) root() []limb {
	if len(s.Topology.groups[0].members) == 0 {
		return nil
	}
	return s.expand(division{}, ^0)
}

// expand returns the limbs below a member that is divided as d says, and by levels that
// all its nodes have one value at until it divides.
func (s *survey) expand(d division, member int32) []limb {
	t := s.Topology
	if member < 0 && t.groups[^member].division == d {
		return s.limbs(^member)
	}
	if d.level == len(t.levels) { // the one node of a leaf
		return []limb{s.node(member)}
	}
	p := t.part(t.value(t.anyNode(member), d.level).Text, d)
	return []limb{s.branch(d, p, member)}
}

func (s *survey) limbs(id int32) []limb {
	g := &s.Topology.groups[id]
	var limbs []limb
	for _, r := range s.members(id) {
		if g.level == len(s.Topology.levels) {
			limbs = append(limbs, s.node(r.member))
			continue
		}
		value := s.Topology.value(s.Topology.anyNode(r.member), g.level).Text
		limbs = append(limbs, s.branch(g.division, s.Topology.part(value, g.division), r.member))
	}
	return limbs
}

func (s *survey) branch(d division, p part, member int32) limb {
	what := s.Topology.levels[d.level].String()
	if d.others {
		what = "spread over the other values"
	}
	label := p.value
	if label == "" {
		label = "(no value)"
	}
	if p.share != 1 {
		label += " x" + strconv.Itoa(int(p.share))
	}
	return limb{what, label, s.branchFigures(member), s.of(member).open > 0, s.expand(p.below, member)}
}

func (s *survey) node(node int32) limb {
	e, n := s.Tally.entry(node), &s.Topology.nodes.all[node]
	f := figures{e.Revision, e.Workload, n.Pods, s.nodeState(node, &e)}
	return limb{"node", n.name, f, !s.Feasibility.answers[node].refuses(), nil}
}

// anyNode returns a node below a member.
func (t *Topology) anyNode(member int32) int32 {
	for member < 0 {
		member = t.groups[^member].members[0]
	}
	return member
}

// figures are what is drawn of a branch or a node.
type figures struct {
	revision, workload int32
	pods               int64
	state              string
}

func (s *survey) branchFigures(member int32) figures {
	sums := s.sums(member)
	return figures{sums.revision, sums.workload, s.of(member).pods, s.branchState(member, &sums)}
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
		text += fmt.Sprintf(", faulty as a whole (%d failures)", sums.history.failures)
	case stands == onTrial:
		text += ", on trial"
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
	case v.standing == onTrial:
		text += ", on trial"
	}
	if isUnready {
		text += ", not ready"
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

// drawing collects rows: a label, and what is right of it.
type drawing struct{ rows [][2]string }

func (d *drawing) row(label string, f figures) {
	d.rows = append(d.rows, [2]string{label, fmt.Sprintf("%8d  %8d  %4d  %s", f.revision, f.workload, f.pods, f.state)})
}

func (d *drawing) limbs(limbs []limb, indent string) {
	for i, l := range limbs {
		twig, trunk := "├── ", "│   "
		if i == len(limbs)-1 {
			twig, trunk = "└── ", "    "
		}
		d.row(indent+twig+l.label, l.figures)
		d.limbs(l.below, indent+trunk)
	}
}

// table sets the rows under their headings.
func (d *drawing) table() string {
	rows := append([][2]string{{"", "revision  workload  pods"}}, d.rows...)
	width := 0
	for _, row := range rows {
		width = max(width, utf8.RuneCountInString(row[0]))
	}
	var out strings.Builder
	for _, row := range rows {
		label := row[0] + strings.Repeat(" ", width-utf8.RuneCountInString(row[0]))
		out.WriteString(strings.TrimRight(label+"  "+row[1], " ") + "\n")
	}
	return out.String()
}
