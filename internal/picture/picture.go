// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package picture draws trees as pictures: SVG, a page of HTML with the SVG in it, and DOT for Graphviz. They need no network, and
// can be read on light and on dark.
//
//	┌───────────── all: 6 pods ─────────────┐
//	├── zone-a: 3 ──────┬── zone-b: 3 ──────┤
//	├── a-1: 2 ┬ a-2: 1 ┼── b-1: 2 ┬ b-2: 1 ┤
//	└──────────┴────────┴──────────┴────────┘
//
// A branch is as wide as its nodes together.
package picture

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

// Sizes in pixels. A letter of the font that is used takes seven at most.
const (
	nodeWidth  = 26
	rowHeight  = 34
	nodeHeight = 110
	letter     = 7
	margin     = 12
	header     = 46
)

// cell is a branch or a node in its place.
type cell struct {
	b          *inspect.Branch
	x, y, w, h int
	node       bool
	folded     int // nodes that are drawn as one
}

// layout places a tree below a point, and returns its cells and how wide and high it is. A leaf of many nodes without pods of the
// workload draws these as one.
func layout(t *inspect.Tree, full bool) (cells []cell, width, height int) {
	depth := 0
	var place func(b *inspect.Branch, x, level int) int
	place = func(b *inspect.Branch, x, level int) int {
		depth = max(depth, level)
		at := len(cells)
		cells = append(cells, cell{b: b, x: x, y: header + level*rowHeight, h: rowHeight})
		w, folded := 0, 0
		for i := range b.Below {
			one := &b.Below[i]
			if one.Level == "node" && one.All == 0 && len(b.Below) > manyNodes && !full {
				folded++
				continue
			}
			w += place(one, x+w, level+1)
		}
		if folded > 0 {
			more := &inspect.Branch{Level: "node", Name: fmt.Sprintf("%d more", folded)}
			cells = append(cells, cell{b: more, x: x + w, y: header + (level+1)*rowHeight, w: nodeWidth, h: nodeHeight, node: true, folded: folded})
			depth = max(depth, level+1)
			w += nodeWidth
		}
		if b.Level == "node" {
			cells[at].node, cells[at].h, w = true, nodeHeight, nodeWidth
		}
		cells[at].w = max(w, nodeWidth)
		return cells[at].w
	}
	width = place(&t.All, margin, 0)
	return cells, width + 2*margin, header + depth*rowHeight + nodeHeight + margin
}

// manyNodes is from how many nodes of a leaf on those without pods are drawn as one.
const manyNodes = 40

// style is for light and for dark. The shades say how many pods a node has; red is for those that the next pod does not fit on.
const style = `
svg { font: 12px ui-monospace, monospace; background: #ffffff; }
rect { stroke: #57606a; stroke-width: 1; fill: #f6f8fa; }
text { fill: #1f2328; }
.s1 { fill: #c6e6ff; } .s2 { fill: #80ccff; } .s3 { fill: #54aeff; } .s4 { fill: #218bff; }
.refused { stroke: #cf222e; stroke-dasharray: 3 2; }
.title { font-weight: bold; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; }
  rect { stroke: #8b949e; fill: #161b22; }
  text { fill: #e6edf3; }
  .s1 { fill: #0c2d6b; } .s2 { fill: #0d419d; } .s3 { fill: #1158c7; } .s4 { fill: #1f6feb; }
  .refused { stroke: #ff7b72; }
}
`

// SVG draws a tree. Unless it is to be full, many nodes without pods of the workload are drawn as one.
func SVG(out io.Writer, t *inspect.Tree, full bool) error {
	cells, width, height := layout(t, full)
	most := int32(1)
	for i := range cells {
		if cells[i].node {
			most = max(most, cells[i].b.Pods)
		}
	}
	title := fmt.Sprintf("%s in namespace %s: %d pods, %s", t.Workload, t.Namespace, t.All.Pods, misplaced(t))
	width = max(width, utf8.RuneCountInString(title)*(letter+1)+2*margin)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", html.EscapeString(title), style)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="26">%s</text>`+"\n", margin, html.EscapeString(title))
	for i := range cells {
		cells[i].draw(&b, most)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// draw draws a cell. Its label is cut to the room that it has; the whole of it is shown where one points at it.
func (c *cell) draw(b *strings.Builder, most int32) {
	class := "s0"
	if c.node && c.b.Pods > 0 {
		class = fmt.Sprintf("s%d", 1+3*c.b.Pods/most)
	}
	if c.node && !c.b.Fits && c.folded == 0 {
		class += " refused"
	}
	label := fmt.Sprintf("%s: %d", c.b.Name, c.b.Pods)
	if c.folded > 0 {
		label = c.b.Name
	}
	whole := label
	if c.b.State != "" {
		whole += ", " + c.b.State
	}
	if len(c.b.Reasons) > 0 {
		whole += ": " + strings.Join(c.b.Reasons, ", ")
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`, html.EscapeString(whole), class, c.x, c.y, c.w, c.h)
	if c.node {
		x, y := c.x+c.w/2+4, c.y+c.h-6
		fmt.Fprintf(b, `<text transform="rotate(-90 %d %d)" x="%d" y="%d">%s</text>`, x, y, x, y, html.EscapeString(fit(label, c.h-12)))
	} else {
		fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`, c.x+6, c.y+c.h/2+4, html.EscapeString(fit(label, c.w-12)))
	}
	b.WriteString("</g>\n")
}

// fit cuts a label to a width: the end of it stays, which has the count.
func fit(label string, width int) string {
	most := max(width/letter, 0)
	letters := []rune(label)
	if len(letters) <= most {
		return label
	}
	if most < 2 {
		return ""
	}
	return "…" + string(letters[len(letters)-most+1:])
}

// misplaced says in a few words how many pods are.
func misplaced(t *inspect.Tree) string {
	sum := int64(0)
	for _, m := range t.Misplaced {
		sum += m.Pods
	}
	return fmt.Sprintf("%d misplaced", sum)
}

// HTML draws a tree as a page by itself.
func HTML(out io.Writer, t *inspect.Tree, full bool) error {
	if _, err := fmt.Fprintf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>%s</title>\n"+
		"<style>body { margin: 1em; background: #ffffff; } @media (prefers-color-scheme: dark) { body { background: #0d1117; } }</style>\n<body>\n", html.EscapeString(t.Workload)); err != nil {
		return err
	}
	if err := SVG(out, t, full); err != nil {
		return err
	}
	_, err := io.WriteString(out, "</body>\n</html>\n")
	return err
}

// DOT writes a tree for Graphviz, always full.
func DOT(out io.Writer, t *inspect.Tree, _ bool) error {
	var b strings.Builder
	b.WriteString("digraph tree {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n")
	n := 0
	var walk func(of *inspect.Branch) int
	walk = func(of *inspect.Branch) int {
		id := n
		n++
		style := ""
		if of.Level == "node" && !of.Fits {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  n%d [label=%q%s];\n", id, fmt.Sprintf("%s: %d", of.Name, of.Pods), style)
		for i := range of.Below {
			fmt.Fprintf(&b, "  n%d -> n%d;\n", id, walk(&of.Below[i]))
		}
		return id
	}
	walk(&t.All)
	b.WriteString("}\n")
	_, err := io.WriteString(out, b.String())
	return err
}
