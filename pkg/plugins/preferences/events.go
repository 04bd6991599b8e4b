// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable,
// apart from policies: those pods package policies wakes by name.
func (pl *Preferences) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A user mends the pod's annotation, which has no event of its own, or
		// changes its labels, which a policy or its soft constraints may select.
		// Nothing else of the pod makes its levels readable.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "pod", pl.afterPodUpdate)},
		// A node arrives with the property that was missing, or is given it.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}, QueueingHintFn: refusal.HintIf(Name, "node", pl.afterNodeChange)},
	}, nil
}

func (pl *Preferences) afterPodUpdate(_ *corev1.Pod, before, after *corev1.Pod) bool {
	if clusterview.SameAnnotation(before, after, clusterview.PlacementAnnotation) && maps.Equal(before.Labels, after.Labels) {
		return false
	}
	_, err := pl.levels(after)
	return err == nil // what is still unreadable would only be refused again
}

func (pl *Preferences) afterNodeChange(pod *corev1.Pod, before, after *corev1.Node) bool {
	levels, err := pl.levels(pod)
	if err != nil || clusterview.LeftOut(after, levels.List) {
		return false // no node makes an unreadable pod schedulable
	}
	return before == nil || clusterview.LeftOut(before, levels.List)
}
