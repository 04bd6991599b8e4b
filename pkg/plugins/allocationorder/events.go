// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable. What changes the order is no event, and
// neither is a node that joins the partition, or gets the traits: pods are put into the queue when the order is computed anew.
func (pl *AllocationOrder) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A user mends the pod's annotation, which has no event of its own, or relabels it into another allocation.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "pod", afterPodUpdate)},
	}, nil
}

func afterPodUpdate(_ *corev1.Pod, before, after *corev1.Pod) bool {
	return !allocations.SaysTheSame(before, after)
}
