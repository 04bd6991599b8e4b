// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

func (c *common) newQueue() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "queue [PARTITION]",
		Short: "List the pods of a partition in their order, and who leaves first if capacity is short",
		Long: "List the pods of a partition in their order, or of all partitions. Pods within the reservation of their allocation come first. " +
			"LEAVES counts the running pods from the end: the one with 1 is the first to leave if capacity is short.",
		Example: "  kubectl espalier queue batch",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			partition := ""
			if len(args) > 0 {
				partition = args[0]
			}
			cluster, err := c.open(cmd)
			if err != nil {
				return err
			}
			queues, err := cluster.Queues(partition)
			if err != nil {
				return err
			}
			var names []string
			for i := range queues {
				for j := range queues[i].Pods {
					names = append(names, "pod/"+queues[i].Pods[j].Pod)
				}
			}
			return out.write(cmd.OutOrStdout(), queues, names, func(p *printer) { drawQueues(p, queues) })
		},
	}
	c.addSource(cmd)
	out.add(cmd)
	return cmd
}

// drawQueues writes a table for each partition.
func drawQueues(p *printer, queues []inspect.Queue) {
	if len(queues) == 0 {
		fmt.Fprintln(p, "No partitions found.")
	}
	for i := range queues {
		q := &queues[i]
		if i > 0 {
			fmt.Fprintln(p)
		}
		fmt.Fprintf(p, "partition %s: %d nodes, %d pods run, %d wait\n", q.Partition, q.Nodes, q.Running, q.Waiting)
		drawQueue(p, q)
	}
}

func drawQueue(out *printer, q *inspect.Queue) {
	rows := newTable(true)
	header := []string{"LEAVES", "POD", "ALLOCATION", "PRIORITY", "RESERVED", "RANK", "USE"}
	if out.wide {
		header = append(header, "NODE", "WHY")
	}
	rows.row(plainly, "POSITION", header...)
	for i := range q.Pods {
		p := &q.Pods[i]
		leaves, reserved, use, m := "", "no", "", plainly
		if p.Leaves > 0 {
			leaves = strconv.Itoa(p.Leaves)
		} else {
			m = odd
		}
		if p.Reserved {
			reserved = "yes"
		}
		switch {
		case p.Priority == 0:
			use = "last"
		case p.Before != nil && p.After != nil:
			use = fmt.Sprintf("%.1f%% to %.1f%%", *p.Before, *p.After)
		}
		cells := []string{leaves, p.Namespace + "/" + p.Pod, p.Allocation, strconv.Itoa(p.Priority), reserved, strconv.Itoa(p.Rank), use}
		if out.wide {
			cells = append(cells, p.Node, p.Why)
		}
		rows.row(m, strconv.Itoa(p.Position), cells...)
	}
	rows.write(out)
}
