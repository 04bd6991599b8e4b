// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drawing shows people what package tree knows: the tree, and why a node was chosen.
package drawing

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Tree draws a tree: its levels, then every branch and node, best first, with the pods that
// count there and what the filters said.
func Tree(v tree.View) string {
	d := drawing{}
	all := v.Outline()
	d.row(all.Label, &all)
	d.branches(all.Below, "")
	return heading(v) + d.table()
}

// heading is the first line of a drawing: the levels in words, first level first.
func heading(v tree.View) string {
	levels := v.Topology.Levels()
	words := make([]string, 0, len(levels)+1)
	for _, l := range levels {
		words = append(words, l.String())
	}
	return strings.Join(append(words, "then nodes"), ", ") + "\n"
}

// drawing collects rows: a label, and what is right of it.
type drawing struct{ rows [][2]string }

func (d *drawing) row(label string, b *tree.Branch) {
	d.rows = append(d.rows, [2]string{label, fmt.Sprintf("%8d  %8d  %4d  %s", b.Revision, b.Workload, b.Pods, b.State)})
}

func (d *drawing) branches(all []tree.Branch, indent string) {
	for i := range all {
		twig, trunk := "├── ", "│   "
		if i == len(all)-1 {
			twig, trunk = "└── ", "    "
		}
		d.row(indent+twig+all[i].Label, &all[i])
		d.branches(all[i].Below, indent+trunk)
	}
}

// table returns the rows as text, below a line that names the columns. All labels are padded to the width of the
// longest.
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
