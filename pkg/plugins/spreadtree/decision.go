// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// choiceKey is where a cycle keeps how the node of its pod was chosen.
const choiceKey fwk.StateKey = "Espalier/Choice"

// choice is the tree that a pod is placed by, until a node is reserved, and then what was made of it. The tree is the one of all cycles,
// and counts what comes after: the pods of a group are reserved twice, and at the second time it has counted them.
type choice struct {
	view tree.View
	// proposed is the node that the tree has proposed, none if all that fit were ranked.
	proposed int32
	// reserved is none until a node is.
	reserved int32
	text     string
}

// none is no node.
const none = int32(-1)

// Clone returns the choice, which is for one cycle.
func (c *choice) Clone() fwk.StateData { return c }

// keep keeps the tree until the pod's node is reserved, if decisions are written down.
func (pl *SpreadTree) keep(state fwk.CycleState, view tree.View, proposed int32) {
	if pl.decisions == config.DecisionRecordEnabled {
		state.Write(choiceKey, &choice{view: view, proposed: proposed, reserved: none})
	}
}

// decided says how a node was chosen by the tree that was kept, and lets go of the tree. It is "" where none was, for another node than the one
// that was proposed, and where the nodes have changed their structure since.
func decided(state fwk.CycleState, node int32) string {
	data, _ := state.Read(choiceKey)
	c, ok := data.(*choice)
	if !ok {
		return ""
	}
	if c.reserved == none {
		if t := c.view.Topology; !t.Stale() && t.Has(node) && (c.proposed == none || c.proposed == node) {
			d := decision.Decision{Fast: c.proposed != none, Steps: c.view.Decision(node)}
			c.text = d.String()
		}
		c.view, c.reserved = tree.View{}, node
	}
	if c.reserved != node {
		return ""
	}
	return c.text
}
