// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable. Time is not among it: a node that does not live long
// enough never will again.
func (pl *NodeLifetime) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A user mends or shortens the pod's lease, or its deadline, which have no events of their own.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "pod", pl.afterPodUpdate)},
		// A node arrives that lives long enough, or is given a later end.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAnnotation}, QueueingHintFn: refusal.HintIf(Name, "node", pl.afterNodeChange)},
	}, nil
}

func (pl *NodeLifetime) afterPodUpdate(_ *corev1.Pod, before, after *corev1.Pod) bool {
	is, err := clusterview.LeaseOf(after, pl.jobs)
	if err != nil {
		return false // what is still unreadable would only be refused again
	}
	was, err := clusterview.LeaseOf(before, pl.jobs)
	return err != nil || is < was
}

func (pl *NodeLifetime) afterNodeChange(pod *corev1.Pod, before, after *corev1.Node) bool {
	lease, err := clusterview.LeaseOf(pod, pl.jobs)
	if err != nil {
		return false // no node makes an unreadable pod schedulable
	}
	now := pl.clock()
	suits := func(node *corev1.Node) bool {
		end, err := clusterview.EndOf(node)
		return err == nil && lifetime.Outlives(end, now, lease)
	}
	return suits(after) && (before == nil || !suits(before))
}
