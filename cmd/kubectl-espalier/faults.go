// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

func (c *common) newFaults() *cobra.Command {
	var out listing
	cmd := &cobra.Command{
		Use:     "faults",
		Short:   "List the nodes on which workloads keep failing",
		Long:    "List the nodes on which workloads keep failing, by the records that schedulers keep in ConfigMaps. A node that is faulty for a revision comes last for its pods.",
		Example: "  kubectl espalier faults -A",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, err := c.listed(&out)
			if err != nil {
				return err
			}
			api, err := c.api()
			if err != nil {
				return err
			}
			f, err := inspect.ReadFaults(cmd.Context(), api, namespace)
			if err != nil {
				return err
			}
			names := namesOf(f.Faults, func(one *inspect.Fault) string { return "node/" + one.Node })
			return out.write(cmd.OutOrStdout(), f, names, func(p *printer) { drawFaults(p, f, out.everywhere, time.Now()) })
		},
	}
	out.add(cmd)
	return cmd
}

// drawFaults writes a line for each node and revision.
func drawFaults(p *printer, f *inspect.Faults, everywhere bool, now time.Time) {
	if len(f.Records) == 0 {
		fmt.Fprintln(p, "No scheduler keeps a record. It does so where its plugin FaultyNode has record.enabled.")
		return
	}
	if len(f.Faults) == 0 {
		fmt.Fprintln(p, "No failures are known.")
		return
	}
	rows := newTable(everywhere)
	rows.row(plainly, "NAMESPACE", "NODE", "WORKLOAD", "REVISION", "STATE", "LAST", "FAILURES")
	for i := range f.Faults {
		one := &f.Faults[i]
		state, m := "", plainly
		if one.Suspect {
			state, m = ",suspect", odd
		}
		if one.Faulty {
			state, m = "faulty"+state, bad
		}
		rows.row(m, one.Namespace, one.Node, one.Workload, one.Revision, strings.TrimPrefix(state, ","), now.Sub(one.Last).Round(time.Second).String()+" ago", one.Kinds())
	}
	rows.write(p)
}
