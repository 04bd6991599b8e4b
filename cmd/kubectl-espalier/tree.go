// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/internal/picture"
)

func (c *common) newTree() *cobra.Command {
	var out output
	var full, watch bool
	var levels string
	cmd := &cobra.Command{
		Use:   "tree KIND/NAME",
		Short: "Draw how the pods of a workload are spread",
		Example: "  kubectl espalier tree deployment/web\n  kubectl espalier tree deployment/web --watch\n" +
			"  kubectl espalier tree deployment/web --levels topology.kubernetes.io/zone,example.com/rack\n  kubectl espalier tree statefulset/db -o json",
		Args:              one("a workload, such as deployment/web"),
		ValidArgsFunction: c.completeWorkloads,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			namespace, err := c.namespace()
			if err != nil {
				return err
			}
			of, err := inspect.ParseRef(namespace, args[0])
			if err != nil {
				return err
			}
			draw := func(to io.Writer) error {
				c.shown = nil // each drawing takes a time of its own
				ctx, cancel := context.WithCancel(cmd.Context())
				defer cancel()
				cluster, err := c.openUntil(ctx, cmd)
				if err != nil {
					return err
				}
				var t inspect.Tree
				if cmd.Flags().Changed("levels") {
					t, err = cluster.TreeOver(ctx, of, levels)
				} else {
					t, err = cluster.Tree(ctx, of)
				}
				if err != nil {
					return err
				}
				if draw := pictures[out.format]; draw != nil {
					return draw(to, &t, full)
				}
				return out.write(to, &t, []string{t.Workload}, func(p *printer) { drawTree(p, &t, full) })
			}
			switch {
			case !watch:
				return draw(cmd.OutOrStdout())
			case out.format != "" && out.format != "wide":
				return fmt.Errorf("--watch: it draws text again and again, and not %s", out.format)
			case c.file != "":
				return errors.New("--watch: a snapshot does not change; leave out one of --watch and --snapshot")
			default:
				return c.watch(cmd, namespace, draw)
			}
		},
	}
	c.addSource(cmd)
	out.add(cmd, "svg", "html", "dot")
	cmd.Flags().StringVar(&levels, "levels", "", "draw it over other levels than its own: keys of node labels, or levels in the syntax of the annotation "+clusterview.PlacementAnnotation)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "draw again whenever pods of the namespace change")
	cmd.Flags().BoolVar(&full, "all-nodes", false, "draw every node, also those without pods of the workload where there are many")
	return cmd
}

// pictures are the formats that are drawn.
var pictures = map[string]func(io.Writer, *inspect.Tree, bool) error{"svg": picture.SVG, "html": picture.HTML, "dot": picture.DOT}

// one wants one argument, and says what it is.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s wants one argument, %s; see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// warn says what could not be read.
func warn(cmd *cobra.Command, unread []string) {
	for _, what := range unread {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: not read:", what)
	}
}

// manyBelow is from how many members on a branch is folded.
const manyBelow = 12

// drawTree draws a tree: a line for each branch and node, all of them if it is to be full or wide.
func drawTree(p *printer, t *inspect.Tree, full bool) {
	fmt.Fprintf(p, "%s in namespace %s, by %s\n", t.Workload, t.Namespace, t.Scheduler)
	fmt.Fprintf(p, "placed by: %s\n", t.PlacedBy)
	var misplaced []string
	sum := int64(0)
	for _, m := range t.Misplaced {
		misplaced = append(misplaced, fmt.Sprintf("%d over %s", m.Pods, m.Level))
		sum += m.Pods
	}
	if sum == 0 {
		fmt.Fprintf(p, "misplaced: %s\n", p.mark(good, "none"))
	} else {
		fmt.Fprintf(p, "misplaced: %s\n", p.mark(bad, strings.Join(misplaced, ", ")))
	}
	for _, n := range t.Notices {
		fmt.Fprintf(p, "%s %s\n", p.mark(odd, "notice:"), n)
	}
	if t.Refused != "" {
		fmt.Fprintf(p, "%s %s\n", p.mark(bad, "the next pod fits nowhere:"), t.Refused)
	}
	fmt.Fprintln(p)
	d := &treeDrawing{wide: p.wide, full: full || p.wide}
	d.rows = [][]string{{"", "PODS", "OLD", "STATE"}}
	if p.wide {
		d.rows[0] = []string{"", "PODS", "OLD", "OTHERS", "ROOM", "STATE"}
	}
	d.marks = []mark{plainly}
	d.line(t.All.Name, &t.All)
	d.below(&t.All, "")
	d.write(p)
}

// treeDrawing is the lines of a tree.
type treeDrawing struct {
	// wide adds the pods of other workloads, and for how many more there is room.
	wide, full bool
	rows       [][]string
	marks      []mark
}

// line adds one for a branch.
func (d *treeDrawing) line(label string, b *inspect.Branch) {
	state := b.State
	if len(b.Reasons) > 0 {
		state += ": " + strings.Join(b.Reasons, ", ")
	}
	cells := []string{label, fmt.Sprint(b.Pods), fmt.Sprint(b.All - b.Pods)}
	if d.wide {
		cells = append(cells, fmt.Sprint(b.Others-int64(b.All)), fmt.Sprint(b.Room))
	}
	d.rows, d.marks = append(d.rows, append(cells, state)), append(d.marks, markOf(b))
}

// markOf is what is thought of a branch or node.
func markOf(b *inspect.Branch) mark {
	switch {
	case strings.Contains(b.State, "faulty"), strings.Contains(b.State, "not ready"), strings.Contains(b.State, "none healthy"):
		return bad
	case !b.Fits, strings.Contains(b.State, "soft"), strings.Contains(b.State, "on trial"):
		return odd
	default:
		return plainly
	}
}

// below adds lines for what is below a branch.
func (d *treeDrawing) below(of *inspect.Branch, indent string) {
	shown, folded := of.Below, 0
	if len(shown) > manyBelow && !d.full {
		shown, folded = fold(shown)
	}
	for i := range shown {
		twig, trunk := "├── ", "│   "
		if i == len(shown)-1 && folded == 0 {
			twig, trunk = "└── ", "    "
		}
		d.line(indent+twig+shown[i].Name, &shown[i])
		d.below(&shown[i], indent+trunk)
	}
	if folded > 0 {
		cells := make([]string, len(d.rows[0]))
		cells[0] = fmt.Sprintf("%s└── %d more without pods of it", indent, folded)
		d.rows, d.marks = append(d.rows, cells), append(d.marks, plainly)
	}
}

// fold returns what is shown of many: what has pods of the workload, and the first few of the others. It says how many it leaves out.
func fold(all []inspect.Branch) (shown []inspect.Branch, folded int) {
	for i := range all {
		if all[i].All > 0 || len(shown) < manyBelow/2 {
			shown = append(shown, all[i])
			continue
		}
		folded++
	}
	return shown, folded
}

// write writes the lines in columns: the numbers to the right, the state as it is.
func (d *treeDrawing) write(p *printer) {
	width := make([]int, len(d.rows[0]))
	for _, row := range d.rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range d.rows {
		last := len(row) - 1
		var line strings.Builder
		for i, cell := range row[:last] {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad + "  ")
				continue
			}
			line.WriteString(pad + cell + "  ")
		}
		line.WriteString(p.mark(d.marks[n], row[last]))
		fmt.Fprintln(p, strings.TrimRight(line.String(), " "))
	}
}
