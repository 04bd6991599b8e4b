// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
func (pl *Platform) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A user mends the pod's annotation, which has no event of its own. The
		// operating system in its spec cannot change.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "pod", pl.afterPodUpdate)},
		// A node of the platform arrives, or the labels that tell it do: whoever makes
		// the Node object may leave them to the kubelet.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}, QueueingHintFn: refusal.HintIf(Name, "node", pl.afterNodeChange)},
	}, nil
}

func (pl *Platform) afterPodUpdate(_ *corev1.Pod, before, after *corev1.Pod) bool {
	if clusterview.SameAnnotation(before, after, clusterview.PlatformsAnnotation) {
		return false
	}
	_, err := clusterview.PlatformWish(after)
	return err == nil // what is still unreadable would only be refused again
}

func (pl *Platform) afterNodeChange(pod *corev1.Pod, before, after *corev1.Node) bool {
	wish, err := clusterview.PlatformWish(pod)
	if err != nil || !wish.Fits(clusterview.NodePlatform(after)) {
		return false // no node makes an unreadable pod schedulable
	}
	return before == nil || !wish.Fits(clusterview.NodePlatform(before))
}
