// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import fwk "k8s.io/kube-scheduler/framework"

// deletionCostKey is where the annotations are that say what it costs to delete the pod.
const deletionCostKey fwk.StateKey = "Espalier/DeletionCost"

type cycleAnnotations map[string]string

// Clone shares the annotations, which nobody modifies.
func (c cycleAnnotations) Clone() fwk.StateData { return c }

// WriteDeletionCost leaves the annotations of a pod's deletion cost for whoever binds it.
func WriteDeletionCost(state fwk.CycleState, annotations map[string]string) {
	state.Write(deletionCostKey, cycleAnnotations(annotations))
}

// ReadDeletionCost returns what was left by WriteDeletionCost, nil if nothing was. It must not be altered.
func ReadDeletionCost(state fwk.CycleState) map[string]string {
	data, err := state.Read(deletionCostKey)
	if err != nil {
		return nil
	}
	annotations, _ := data.(cycleAnnotations)
	return annotations
}
