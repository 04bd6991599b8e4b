// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
func (pl *Constraints) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A user mends or loosens the pod's annotation, which has no event of its own.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "pod", pl.afterPodUpdate)},
		// A node arrives on which the constraints hold, or its labels change so that they do.
		// That a node has another address has no event: see addressesChanged.
		{Event: fwk.ClusterEvent{
			Resource:   fwk.Node,
			ActionType: fwk.Add | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint | fwk.UpdateNodeCondition,
		}, QueueingHintFn: refusal.HintIf(Name, "node", pl.afterNodeChange)},
	}, nil
}

// addressesChanged reports whether a node has other addresses than before. One that is
// attached to a node that runs leaves it ready, and the framework sees no event.
func addressesChanged(before, after *corev1.Node) bool {
	return !slices.Equal(before.Status.Addresses, after.Status.Addresses)
}

// suits reports whether a pod has constraints about addresses, and all of its
// constraints hold on a node.
func suits(pod *corev1.Pod, node *corev1.Node) bool {
	constraints, err := clusterview.Constraints(pod)
	return err == nil && constraint.About(constraints, constraint.IP) && hold(constraints, node)
}

func (pl *Constraints) afterPodUpdate(_ *corev1.Pod, before, after *corev1.Pod) bool {
	if clusterview.SameAnnotation(before, after, clusterview.ConstraintsAnnotation) {
		return false
	}
	_, err := clusterview.Constraints(after)
	return err == nil // what is still unreadable would only be refused again
}

func (pl *Constraints) afterNodeChange(pod *corev1.Pod, before, after *corev1.Node) bool {
	constraints, err := clusterview.Constraints(pod)
	if err != nil || !hold(constraints, after) {
		return false // no node makes an unreadable pod schedulable
	}
	// The address may have come in an update before this one, without an event, so
	// that the constraints held a moment ago already and the pod was never told.
	return before == nil || !hold(constraints, before) || constraint.About(constraints, constraint.IP)
}

func hold(constraints []constraint.Constraint, node *corev1.Node) bool {
	n := clusterview.ConstraintNode(node)
	return constraint.Hold(constraints, &n)
}
