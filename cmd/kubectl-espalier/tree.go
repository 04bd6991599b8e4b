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
				return out.write(to, &t, func(w io.Writer) { drawTree(w, &t, full || out.format == "wide") })
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
	out.add(cmd, "wide", "svg", "html", "dot")
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

// drawTree draws a tree: a line for each branch and node.
func drawTree(out io.Writer, t *inspect.Tree, full bool) {
	fmt.Fprintf(out, "%s in namespace %s, by %s\n", t.Workload, t.Namespace, t.Scheduler)
	fmt.Fprintf(out, "placed by: %s\n", t.PlacedBy)
	var misplaced []string
	sum := int64(0)
	for _, m := range t.Misplaced {
		misplaced = append(misplaced, fmt.Sprintf("%d over %s", m.Pods, m.Level))
		sum += m.Pods
	}
	if sum == 0 {
		misplaced = []string{"none"}
	}
	fmt.Fprintf(out, "misplaced: %s\n", strings.Join(misplaced, ", "))
	for _, n := range t.Notices {
		fmt.Fprintf(out, "notice: %s\n", n)
	}
	if t.Refused != "" {
		fmt.Fprintf(out, "the next pod fits nowhere: %s\n", t.Refused)
	}
	fmt.Fprintln(out)
	rows := [][4]string{{"", "PODS", "OLD", "STATE"}}
	line := func(label string, b *inspect.Branch) {
		state := b.State
		if len(b.Reasons) > 0 {
			state += ": " + strings.Join(b.Reasons, ", ")
		}
		rows = append(rows, [4]string{label, fmt.Sprint(b.Pods), fmt.Sprint(b.All - b.Pods), state})
	}
	line(t.All.Name, &t.All)
	var below func(of *inspect.Branch, indent string)
	below = func(of *inspect.Branch, indent string) {
		shown, folded := of.Below, 0
		if len(shown) > manyBelow && !full {
			shown, folded = fold(shown)
		}
		for i := range shown {
			twig, trunk := "├── ", "│   "
			if i == len(shown)-1 && folded == 0 {
				twig, trunk = "└── ", "    "
			}
			line(indent+twig+shown[i].Name, &shown[i])
			below(&shown[i], indent+trunk)
		}
		if folded > 0 {
			rows = append(rows, [4]string{fmt.Sprintf("%s└── %d more without pods of it", indent, folded), "", "", ""})
		}
	}
	below(&t.All, "")
	write(out, rows)
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

// write writes rows in columns: the numbers to the right.
func write(out io.Writer, rows [][4]string) {
	var width [4]int
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		pad := func(i int) string { return strings.Repeat(" ", width[i]-utf8.RuneCountInString(row[i])) }
		fmt.Fprintln(out, strings.TrimRight(row[0]+pad(0)+"  "+pad(1)+row[1]+"  "+pad(2)+row[2]+"  "+row[3], " "))
	}
}
