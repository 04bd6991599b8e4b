// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"maps"

	fwk "k8s.io/kube-scheduler/framework"
)

// bindingKey is where the annotations are that a pod is to be bound with, besides PlacedByAnnotation.
const bindingKey fwk.StateKey = "Espalier/Binding"

type cycleAnnotations map[string]string

// Clone shares the annotations, which nobody modifies.
func (c cycleAnnotations) Clone() fwk.StateData { return c }

// WriteBinding leaves annotations for whoever binds the pod, beside those that were left before: its deletion cost, how its node was chosen,
// and when its lease ends. They must not be altered afterwards.
func WriteBinding(state fwk.CycleState, annotations map[string]string) {
	if before := ReadBinding(state); before != nil {
		all := maps.Clone(before)
		maps.Copy(all, annotations)
		annotations = all
	}
	state.Write(bindingKey, cycleAnnotations(annotations))
}

// ReadBinding returns what was left by WriteBinding, nil if nothing was. It must not be altered.
func ReadBinding(state fwk.CycleState) map[string]string {
	data, err := state.Read(bindingKey)
	if err != nil {
		return nil
	}
	annotations, _ := data.(cycleAnnotations)
	return annotations
}
