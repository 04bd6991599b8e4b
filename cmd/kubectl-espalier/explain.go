// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
)

// maxNamed is how many nodes of a reason are named in a line.
const maxNamed = 3

func (c *common) newExplain() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "explain pod/NAME",
		Short:   "Say why a pod is pending, or why it is where it is",
		Example: "  kubectl espalier explain pod/web-5d8f9c7b6-x2x8k",
		Args:    one("a pod, such as pod/web-0"),

		ValidArgsFunction: c.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			kind, name, found := strings.Cut(args[0], "/")
			switch {
			case !found:
				name = kind
			case kind != "pod" && kind != "po" && kind != "pods":
				return fmt.Errorf("%q is no pod: write pod/NAME; `kubectl espalier tree` draws a workload", args[0])
			}
			namespace, err := c.namespace()
			if err != nil {
				return err
			}
			cluster, err := c.open(cmd)
			if err != nil {
				return err
			}
			e, err := cluster.Explain(cmd.Context(), namespace, name)
			if err != nil {
				return err
			}
			return out.write(cmd.OutOrStdout(), e, []string{"pod/" + e.Pod}, func(p *printer) { drawExplanation(p, e) })
		},
	}
	c.addSource(cmd)
	out.add(cmd)
	return cmd
}

// drawExplanation writes an explanation for people.
func drawExplanation(out *printer, e *inspect.Explanation) {
	fmt.Fprintf(out, "pod/%s in namespace %s, by %s\n", e.Pod, e.Namespace, e.Scheduler)
	if e.Order != "" {
		fmt.Fprintf(out, "order: %s\n", e.Order)
	}
	if e.Node != "" {
		fmt.Fprintf(out, "on node %s\n", e.Node)
		if e.PlacedBy != "" {
			fmt.Fprintf(out, "placed by: %s\n", e.PlacedBy)
		}
		drawDecision(out, e.Decision)
		if len(e.Path) > 0 {
			fmt.Fprintln(out, "now:")
		}
		for i := range e.Path {
			t := &e.Path[i]
			fmt.Fprintf(out, "  %s: %s has %d (%s)\n", t.Level, t.Chosen.Name, t.Chosen.Pods, t.Chosen.State)
			for j, o := range t.Others {
				if j == maxNamed && !out.wide {
					fmt.Fprintf(out, "    and %d more\n", len(t.Others)-j)
					break
				}
				fmt.Fprintf(out, "    %s has %d (%s)\n", o.Name, o.Pods, o.State)
			}
		}
	} else {
		if e.Fits != nil {
			m := bad
			if *e.Fits > 0 {
				m = good
			}
			fmt.Fprintln(out, out.mark(m, fmt.Sprintf("pending: fits on %d of %d nodes", *e.Fits, e.Nodes)))
		}
		for _, r := range e.Reasons {
			named := r.Nodes
			more := ""
			if len(named) > maxNamed && !out.wide {
				more = fmt.Sprintf(" and %d more", len(named)-maxNamed)
				named = named[:maxNamed]
			}
			fmt.Fprintf(out, "  %d: %s (%s%s)\n", len(r.Nodes), r.Reason, strings.Join(named, ", "), more)
		}
		for i, h := range e.Helps {
			if i == 0 {
				fmt.Fprintln(out, out.mark(good, "it would fit if you"))
			}
			fmt.Fprintf(out, "  %s: on %d nodes\n", h.Change, h.Fits)
		}
	}
	if e.Note != "" {
		fmt.Fprintln(out, e.Note)
	}
}

// drawDecision writes how a node was chosen, a line a level.
func drawDecision(out *printer, d *decision.Decision) {
	if d == nil {
		return
	}
	path := "ranked by the tree among all nodes that fit"
	if d.Fast {
		path = "proposed by the tree before other nodes were filtered"
	}
	fmt.Fprintf(out, "when it was bound: %s\n", path)
	for i := range d.Steps {
		fmt.Fprintf(out, "  %s\n", d.Steps[i].String())
	}
	if d.Cut {
		fmt.Fprintln(out, "  the rest was left out: there was no space for it")
	}
}
