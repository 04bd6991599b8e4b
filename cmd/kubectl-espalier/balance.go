// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

func (c *common) newBalance() *cobra.Command {
	var out listing
	var uneven bool
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "List the workloads, those with the most misplaced pods first",
		Long: "List the workloads, those with the most misplaced pods first. A pod is misplaced if it would have to move for its workload to be even over the " +
			"nodes on which another pod of it fits.",
		Example: "  kubectl espalier balance -A --uneven",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, err := c.listed(&out)
			if err != nil {
				return err
			}
			cluster, err := c.open(cmd)
			if err != nil {
				return err
			}
			p := newProgress(cmd.ErrOrStderr())
			b, err := cluster.Balance(cmd.Context(), namespace, func(done, all int) { p.show(done, all, "looking at workloads") })
			p.end()
			if err != nil {
				return err
			}
			all := len(b.Workloads)
			if uneven {
				b.Workloads = b.Uneven()
			}
			return out.write(cmd.OutOrStdout(), b, func(w io.Writer) {
				if all > 0 && len(b.Workloads) == 0 && out.format != "name" {
					fmt.Fprintf(w, "All workloads are even: %d.\n", all)
					return
				}
				drawBalance(w, b, out.everywhere, out.format)
			})
		},
	}
	c.addSource(cmd)
	out.add(cmd, "wide", "name")
	cmd.Flags().BoolVar(&uneven, "uneven", false, "list only those with misplaced pods, and those of which that is not known")
	return cmd
}

// drawBalance writes a line for each workload.
func drawBalance(out io.Writer, b *inspect.Balance, everywhere bool, format string) {
	if format == "name" {
		for i := range b.Workloads {
			fmt.Fprintln(out, b.Workloads[i].Workload)
		}
		return
	}
	if len(b.Workloads) == 0 {
		fmt.Fprintln(out, "No workloads found.")
		return
	}
	row, flush := newTable(out, everywhere)
	defer flush()
	row("NAMESPACE", "WORKLOAD", "PODS", "MISPLACED", "WHERE")
	for i := range b.Workloads {
		w := &b.Workloads[i]
		where := w.Note
		for _, m := range w.ByLevel {
			if m.Pods > 0 || format == "wide" {
				where += fmt.Sprintf("%d over %s, ", m.Pods, m.Level)
			}
		}
		row(w.Namespace, w.Workload, fmt.Sprint(w.Pods), fmt.Sprint(w.Misplaced), strings.TrimSuffix(where, ", "))
	}
}
