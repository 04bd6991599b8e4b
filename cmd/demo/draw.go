// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

const (
	// width is the number of columns that nothing the demo prints exceeds.
	width    = 100
	barWidth = 22
)

// draw shows one workload: a head, and for each zone a line with its count, a bar,
// and its racks, each with its count and the counts of its nodes in order of name.
func draw(head, verdict string, nodes []evenness.Node) string {
	var b strings.Builder
	pad := max(1, width-utf8.RuneCountInString(head)-utf8.RuneCountInString(verdict))
	fmt.Fprintf(&b, "%s%s%s\n", head, strings.Repeat(" ", pad), verdict)
	zones := evenness.Grow(topology, nodes).Children
	most := 1
	for _, z := range zones {
		most = max(most, z.Count)
	}
	for i, z := range zones {
		fork := "├"
		if i == len(zones)-1 {
			fork = "└"
		}
		line := fmt.Sprintf("  %s %-7s%3d %-*s", fork, z.Name, z.Count, barWidth, bar(z.Count, most))
		for _, r := range z.Children {
			line += fmt.Sprintf(" │ %s %2d:%s", strings.TrimPrefix(r.Name, z.Name+"-"), r.Count, numbers(r.Children))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// bar has a block for each pod, or as many as there is room for.
func bar(count, most int) string {
	blocks := count
	if most > barWidth {
		blocks = (count*barWidth + most - 1) / most
	}
	return strings.Repeat("█", blocks)
}

func numbers(nodes []*evenness.Branch) string {
	var b strings.Builder
	for _, n := range nodes {
		if n.Count == 0 {
			b.WriteString("  ·")
			continue
		}
		fmt.Fprintf(&b, "%3d", n.Count)
	}
	return b.String()
}
