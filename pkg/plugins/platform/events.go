// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
func (pl *Platform) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// Somebody mends the pod's annotation, which has no event of its own. The
		// operating system in its spec cannot change.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: pl.afterPodUpdate},
		// A node of the platform arrives, or the labels that tell it do: whoever makes
		// the Node object may leave them to the kubelet.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}, QueueingHintFn: pl.afterNodeChange},
	}, nil
}

func (pl *Platform) afterPodUpdate(_ klog.Logger, _ *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a pod event: %w", Name, err)
	}
	a, inA := before.Annotations[clusterview.PlatformsAnnotation]
	b, inB := after.Annotations[clusterview.PlatformsAnnotation]
	// An empty annotation is not the same as none: it is refused, and taking it away mends the pod.
	if inA == inB && a == b {
		return fwk.QueueSkip, nil
	}
	if _, err := clusterview.PlatformWish(after); err != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // still unreadable: trying again would only say so again
	}
	return fwk.Queue, nil
}

func (pl *Platform) afterNodeChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a node event: %w", Name, err)
	}
	wish, err := clusterview.PlatformWish(pod)
	if err != nil || !wish.Fits(clusterview.NodePlatform(after)) {
		return fwk.QueueSkip, nil //nolint:nilerr // no node makes an unreadable pod schedulable
	}
	if before != nil && wish.Fits(clusterview.NodePlatform(before)) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
