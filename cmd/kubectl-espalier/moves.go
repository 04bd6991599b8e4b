// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/espalier-scheduler/espalier/internal/inspect"
)

func (c *common) newMoves() *cobra.Command {
	var out listing
	cmd := &cobra.Command{
		Use:     "moves",
		Short:   "List the pods that are being replaced, and those that were",
		Example: "  kubectl espalier moves -A",
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
			moves, err := inspect.ReadMoves(cmd.Context(), api, namespace)
			if err != nil {
				return err
			}
			return out.write(cmd.OutOrStdout(), moves, func(w io.Writer) { drawMoves(w, moves, out.everywhere, time.Now()) })
		},
	}
	out.add(cmd)
	return cmd
}

// drawMoves writes a line for each Move.
func drawMoves(out io.Writer, moves []inspect.Move, everywhere bool, now time.Time) {
	if len(moves) == 0 {
		fmt.Fprintln(out, "No Moves are known.")
		return
	}
	row, flush := newTable(out, everywhere)
	defer flush()
	row("NAMESPACE", "POD", "REPLICASET", "REASON", "PHASE", "AGE", "TOOK", "MESSAGE")
	for i := range moves {
		m := &moves[i]
		took := ""
		if m.Ended != nil {
			took = duration.HumanDuration(m.Ended.Sub(m.Created.Time))
		}
		row(m.Namespace, m.Pod, m.ReplicaSet, string(m.Reason), string(m.Phase), duration.HumanDuration(now.Sub(m.Created.Time)), took, m.Message)
	}
}
