// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// String draws the tree: its levels, then every branch and node, best first, with
// the pods that count there and what the filters said. The first node under the
// first branches is the one that Next offers, as far as the filters have been asked.
func (t *Tree) String() string {
	t.settle()
	d := drawing{}
	d.row("all", t.root.figures())
	d.branches(t.root, "")
	return t.heading() + d.table()
}

// heading is the levels in words, one after the other.
func (t *Tree) heading() string {
	words := make([]string, 0, len(t.levels)+1)
	for _, l := range t.levels {
		words = append(words, l.String())
	}
	return strings.Join(append(words, "then nodes"), ", ") + "\n"
}

// drawing collects rows, so that the columns can be as wide as the widest cell.
type drawing struct{ rows [][]string }

func (d *drawing) row(label string, figures []string) {
	d.rows = append(d.rows, append([]string{label}, figures...))
}

func (d *drawing) branches(b *branch, indent string) {
	if b.isLeaf() {
		nodes := b.nodes.inOrder()
		for i, n := range nodes {
			twig, _ := limbs(i == len(nodes)-1)
			d.row(indent+twig+n.Name, n.figures())
		}
		return
	}
	children := slices.SortedFunc(slices.Values(b.children), compareBranches)
	for i, c := range children {
		twig, trunk := limbs(i == len(children)-1)
		d.row(indent+twig+c.label(), c.figures())
		d.branches(c, indent+trunk)
	}
}

func limbs(last bool) (twig, trunk string) {
	if last {
		return "└── ", "    "
	}
	return "├── ", "│   "
}

// label is a branch's value as people see it.
func (b *branch) label() string {
	label := b.value
	if label == "" {
		label = "(no value)"
	}
	if b.share != 1 {
		label += " x" + strconv.FormatInt(b.share, 10)
	}
	return label
}

func (b *branch) figures() []string {
	return []string{
		strconv.FormatInt(b.tally.Revision, 10),
		strconv.FormatInt(b.tally.Workload, 10),
		strconv.FormatInt(b.tally.All, 10),
		b.state(),
	}
}

// state says how many nodes a branch has to offer, and what is held against it.
func (b *branch) state() string {
	s := fmt.Sprintf("%d open", b.open)
	if b.unasked > 0 {
		s += fmt.Sprintf(", %d not asked", b.unasked)
	}
	switch {
	case b.open == 0:
	case b.standing.noneHealthy():
		s += ", none healthy"
	case b.standing == faultyAsAWhole:
		s += fmt.Sprintf(", faulty as a whole (%d failures)", b.history.failures)
	case b.standing == onTrial:
		s += ", on trial"
	}
	return s + unforgiven(b.history.unforgiven)
}

func (n *node) figures() []string {
	return []string{
		strconv.FormatInt(n.Tally.Revision, 10),
		strconv.FormatInt(n.Tally.Workload, 10),
		strconv.FormatInt(n.Tally.All, 10),
		n.state(),
	}
}

func (n *node) state() string {
	s := "not asked"
	switch n.answer {
	case fits:
		s = "fits"
	case refused:
		s = "refused"
	}
	switch {
	case n.failures > 0:
		s += fmt.Sprintf(", faulty (%d failures)", n.failures)
	case n.standing == onTrial:
		s += ", on trial"
	}
	if n.Unready {
		s += ", not ready"
	}
	return s + unforgiven(n.unforgiven)
}

// unforgiven says what may have broken a tie.
func unforgiven(failures int) string {
	if failures == 0 {
		return ""
	}
	return fmt.Sprintf(", %d unforgiven", failures)
}

// table sets the rows under their headings: labels to the left, numbers to the right.
func (d *drawing) table() string {
	rows := append([][]string{{"", "revision", "workload", "pods", ""}}, d.rows...)
	var width [5]int
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		line := row[0] + pad(width[0], row[0])
		for i, cell := range row[1:4] {
			line += "  " + pad(width[i+1], cell) + cell
		}
		out.WriteString(strings.TrimRight(line+"  "+row[4], " ") + "\n")
	}
	return out.String()
}

func pad(width int, cell string) string {
	return strings.Repeat(" ", width-utf8.RuneCountInString(cell))
}
