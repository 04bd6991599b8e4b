// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable,
// apart from policies: those pods package policies wakes by name.
func (pl *Preferences) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// Somebody mends the pod's annotation, which has no event of its own, or
		// changes its labels, which a policy or its soft constraints may select.
		// Nothing else of the pod makes its levels readable.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: pl.afterPodUpdate},
		// A node arrives with the property that was missing, or is given it.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}, QueueingHintFn: pl.afterNodeChange},
	}, nil
}

func (pl *Preferences) afterPodUpdate(_ klog.Logger, _ *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a pod event: %w", Name, err)
	}
	if samePlacement(before, after) && maps.Equal(before.Labels, after.Labels) {
		return fwk.QueueSkip, nil
	}
	if _, err := pl.levels(after); err != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // still unreadable: trying again would only say so again
	}
	return fwk.Queue, nil
}

// samePlacement compares two states of a pod's annotation. An empty one is not the
// same as none: it is refused, and taking it away mends the pod.
func samePlacement(before, after *corev1.Pod) bool {
	a, inA := before.Annotations[clusterview.PlacementAnnotation]
	b, inB := after.Annotations[clusterview.PlacementAnnotation]
	return inA == inB && a == b
}

func (pl *Preferences) afterNodeChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a node event: %w", Name, err)
	}
	levels, err := pl.levels(pod)
	if err != nil || clusterview.LeftOut(after, levels) {
		return fwk.QueueSkip, nil //nolint:nilerr // no node makes an unreadable pod schedulable
	}
	if before != nil && !clusterview.LeftOut(before, levels) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
