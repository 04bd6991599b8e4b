// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

const (
	// viewKey is where a cycle keeps the tree that its pod is placed by, until a node is reserved. The tree is the one of all
	// cycles, and counts what comes after.
	viewKey fwk.StateKey = "Espalier/View"
	// decisionKey is where it keeps what was made of it then. The pods of a group are reserved twice, and at the second time the tree
	// has counted them.
	decisionKey fwk.StateKey = "Espalier/Decision"
)

type cycleView struct {
	tree.View
	// proposed is the node that the tree has proposed, none if all that fit were ranked.
	proposed int32
}

// none is no node.
const none = int32(-1)

// Clone returns the view, which is for one cycle.
func (v *cycleView) Clone() fwk.StateData { return v }

type cycleDecision struct {
	node int32
	text string
}

// Clone returns the decision, which nobody alters.
func (d *cycleDecision) Clone() fwk.StateData { return d }

// keep keeps the tree until the pod's node is reserved, if decisions are written down.
func (pl *SpreadTree) keep(state fwk.CycleState, view tree.View, proposed int32) {
	if pl.decisions == config.DecisionRecordEnabled {
		state.Write(viewKey, &cycleView{view, proposed})
	}
}

// decided says how a node was chosen by the tree that was kept, and lets go of the tree. It is "" where none was, for another node than the one
// that was proposed, and where the nodes have changed their structure since.
func decided(state fwk.CycleState, node int32) string {
	if data, err := state.Read(decisionKey); err == nil {
		if d, ok := data.(*cycleDecision); ok && d.node == node {
			return d.text
		}
		return ""
	}
	data, err := state.Read(viewKey)
	if err != nil {
		return ""
	}
	state.Delete(viewKey)
	v, ok := data.(*cycleView)
	if !ok || v.Topology.Stale() || !v.Topology.Has(node) || v.proposed != none && v.proposed != node {
		return ""
	}
	d := decision.Decision{Fast: v.proposed != none, Steps: v.Decision(node)}
	text := d.String()
	state.Write(decisionKey, &cycleDecision{node, text})
	return text
}
