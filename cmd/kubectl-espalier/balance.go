// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
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
			b, err := cluster.Balance(cmd.Context(), namespace, func(done, all int) { c.bar(cmd).Show(done, all, "looking at workloads") })
			c.bar(cmd).End()
			if err != nil {
				return err
			}
			all := len(b.Workloads)
			if uneven {
				b.Workloads = b.Uneven()
			}
			names := namesOf(b.Workloads, func(s *inspect.Standing) string { return s.Workload })
			return out.write(cmd.OutOrStdout(), b, names, func(p *printer) {
				if all > 0 && len(b.Workloads) == 0 {
					fmt.Fprintf(p, "All workloads are even: %d.\n", all)
					return
				}
				drawBalance(p, b, out.everywhere)
			})
		},
	}
	c.addSource(cmd)
	out.add(cmd)
	cmd.Flags().BoolVar(&uneven, "uneven", false, "list only those with misplaced pods, and those of which that is not known")
	return cmd
}

// drawBalance writes a line for each workload. Where pods are misplaced is said of levels that have some, or of all if it is to be wide.
func drawBalance(p *printer, b *inspect.Balance, everywhere bool) {
	if len(b.Workloads) == 0 {
		fmt.Fprintln(p, "No workloads found.")
		return
	}
	rows := newTable(everywhere)
	rows.row(plainly, "NAMESPACE", "WORKLOAD", "PODS", "MISPLACED", "WHERE")
	for i := range b.Workloads {
		w := &b.Workloads[i]
		where, m := w.Note, plainly
		for _, at := range w.ByLevel {
			if at.Pods > 0 || p.wide {
				where += fmt.Sprintf("%d over %s, ", at.Pods, at.Level)
			}
		}
		switch {
		case w.Note != "":
			m = odd
		case w.Misplaced > 0:
			m = bad
		}
		rows.row(m, w.Namespace, w.Workload, fmt.Sprint(w.Pods), fmt.Sprint(w.Misplaced), strings.TrimSuffix(where, ", "))
	}
	rows.write(p)
}
