// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
func (pl *Constraints) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// Somebody mends or loosens the pod's annotation, which has no event of its own.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: pl.afterPodUpdate},
		// A node arrives on which the constraints hold, or its labels change so that they do.
		// That a node has another address has no event: see addressesChanged.
		{Event: fwk.ClusterEvent{
			Resource:   fwk.Node,
			ActionType: fwk.Add | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint | fwk.UpdateNodeCondition,
		}, QueueingHintFn: pl.afterNodeChange},
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

func (pl *Constraints) afterPodUpdate(_ klog.Logger, _ *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a pod event: %w", Name, err)
	}
	a, inA := before.Annotations[clusterview.ConstraintsAnnotation]
	b, inB := after.Annotations[clusterview.ConstraintsAnnotation]
	// An empty annotation is not the same as none: it is refused, and taking it away mends the pod.
	if inA == inB && a == b {
		return fwk.QueueSkip, nil
	}
	if _, err := clusterview.Constraints(after); err != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // still unreadable: trying again would only say so again
	}
	return fwk.Queue, nil
}

func (pl *Constraints) afterNodeChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a node event: %w", Name, err)
	}
	constraints, err := clusterview.Constraints(pod)
	if err != nil || !hold(constraints, after) {
		return fwk.QueueSkip, nil //nolint:nilerr // no node makes an unreadable pod schedulable
	}
	// The address may have come in an update before this one, without an event, so
	// that the constraints held a moment ago already and the pod was never told.
	if before != nil && hold(constraints, before) && !constraint.About(constraints, constraint.IP) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

func hold(constraints []constraint.Constraint, node *corev1.Node) bool {
	n := clusterview.ConstraintNode(node)
	return constraint.Hold(constraints, &n)
}
