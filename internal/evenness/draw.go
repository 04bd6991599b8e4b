// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package evenness

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	// Width is the number of columns that no line of a drawing exceeds, as long
	// as names are at most a third of it.
	Width    = 100
	barWidth = 20
)

// Draw shows where the pods are: a line for each branch with its count and a bar,
// and beside the last level the count of every node. Bars of one drawing have one
// scale. A branch without room or pods is drawn too: that it is empty is the point.
func Draw(levels []Level, nodes []Node) string {
	root := Grow(levels, nodes)
	pen := &pen{}
	pen.measure(root, 0)
	if len(levels) == 0 {
		pen.nodes(root, "")
		return pen.String()
	}
	pen.children(root, "")
	return pen.String()
}

// pen holds what all lines of one drawing have in common.
type pen struct {
	strings.Builder
	nameWidth, maxCount int
}

func (p *pen) measure(b *Branch, depth int) {
	if b.isNode() {
		return
	}
	if depth > 0 {
		p.nameWidth = max(p.nameWidth, utf8.RuneCountInString(b.Name)+2*depth)
		p.maxCount = max(p.maxCount, b.Count)
	}
	for _, c := range b.Children {
		p.measure(c, depth+1)
	}
}

func (p *pen) children(b *Branch, indent string) {
	for i, c := range b.Children {
		fork, below := "├ ", "│ "
		if i == len(b.Children)-1 {
			fork, below = "└ ", "  "
		}
		name := indent + fork + c.Name
		pad := strings.Repeat(" ", max(0, p.nameWidth-utf8.RuneCountInString(name)))
		line := fmt.Sprintf("%s%s %4d %s", name, pad, c.Count, p.bar(c.Count))
		if c.holdsNodes() {
			p.nodes(c, line+strings.Repeat(" ", max(1, p.nameWidth+6+barWidth+2-utf8.RuneCountInString(line))))
			continue
		}
		p.WriteString(strings.TrimRight(line, " ") + "\n")
		p.children(c, indent+below)
	}
}

// nodes writes the counts of a leaf's nodes after the head of its line, on as many lines as it takes.
func (p *pen) nodes(leaf *Branch, head string) {
	column := utf8.RuneCountInString(head)
	line := head
	for _, n := range leaf.Children {
		word := fmt.Sprintf("%s:%d ", n.Name, n.Count)
		if utf8.RuneCountInString(line)+utf8.RuneCountInString(word) > Width+1 && utf8.RuneCountInString(line) > column {
			p.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", column)
		}
		line += word
	}
	p.WriteString(strings.TrimRight(line, " ") + "\n")
}

// bar draws a pod as one block as long as the largest branch fits, and in proportion otherwise.
func (p *pen) bar(count int) string {
	blocks := count
	if p.maxCount > barWidth {
		blocks = (count*barWidth + p.maxCount - 1) / p.maxCount
	}
	return strings.Repeat("█", blocks)
}

func (b *Branch) isNode() bool { return b.over == "" }

func (b *Branch) holdsNodes() bool { return b.over == "node" }

func sortedNodes(nodes []Node) []Node {
	sorted := append([]Node(nil), nodes...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Name < sorted[j].Name })
	return sorted
}
