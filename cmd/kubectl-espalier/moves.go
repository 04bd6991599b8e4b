// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
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
			names := namesOf(moves, func(m *inspect.Move) string { return "move.placement.espalier.dev/" + m.Name })
			return out.write(cmd.OutOrStdout(), moves, names, func(p *printer) { drawMoves(p, moves, out.everywhere, time.Now()) })
		},
	}
	out.add(cmd)
	return cmd
}

// drawMoves writes a line for each Move, with its own name if it is to be wide.
func drawMoves(p *printer, moves []inspect.Move, everywhere bool, now time.Time) {
	if len(moves) == 0 {
		fmt.Fprintln(p, "No Moves are known.")
		return
	}
	rows := newTable(everywhere)
	head := []string{"POD", "OWNER", "REASON", "PHASE", "AGE", "TOOK", "MESSAGE"}
	if p.wide {
		head = append([]string{"MOVE"}, head...)
	}
	rows.row(plainly, "NAMESPACE", head...)
	for i := range moves {
		m := &moves[i]
		took := ""
		if m.Ended != nil {
			took = duration.HumanDuration(m.Ended.Sub(m.Created.Time))
		}
		cells := []string{m.Pod, cmp.Or(m.ReplicaSet, m.StatefulSet), string(m.Reason), string(m.Phase), duration.HumanDuration(now.Sub(m.Created.Time)), took, m.Message}
		if p.wide {
			cells = append([]string{m.Name}, cells...)
		}
		rows.row(phases[m.Phase], m.Namespace, cells...)
	}
	rows.write(p)
}

// phases are what is thought of those in which a Move has ended.
var phases = map[placementv1alpha1.MovePhase]mark{placementv1alpha1.MoveDone: good, placementv1alpha1.MoveUndone: odd, placementv1alpha1.MoveFailed: bad}
