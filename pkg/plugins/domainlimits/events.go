// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
func (pl *DomainLimits) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A pod of the same revision goes, and leaves its place in all its domains. It
		// does so as soon as it is told to go, which has no event of its own; or it is
		// relabelled, and is of another workload from then on.
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Update | fwk.Delete}, QueueingHintFn: pl.afterPodLeft},
		// Somebody mends or changes the pod's annotation, which has no event of its own,
		// or relabels it into a workload that has room.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: pl.afterPodUpdate},
		// A node brings a domain with room, moves to another domain and takes its pods
		// along, or goes and takes its pods out of theirs.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel | fwk.Delete}, QueueingHintFn: pl.afterNodeChange},
	}, nil
}

func (pl *DomainLimits) afterPodLeft(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a pod event: %w", Name, err)
	}
	// A pod that was told to go left its place then. But it may be gone before anybody
	// has seen that it was told, so that a deletion is always looked at.
	if after != nil && !clusterview.Counts(before) {
		return fwk.QueueSkip, nil
	}
	waiting := pl.identifier.Identify(pod)
	if !alike(waiting, pl.identifier.Identify(before)) {
		return fwk.QueueSkip, nil
	}
	if after != nil && clusterview.Counts(after) && alike(waiting, pl.identifier.Identify(after)) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// alike reports whether two pods take room from each other, as far as that is known:
// whose owner is not known yet may turn out to be of any workload of its namespace.
func alike(a, b clusterview.Identity) bool {
	if a.SameRevision(b) {
		return true
	}
	return a.Workload.Namespace == b.Workload.Namespace && a.Revision == b.Revision && (a.Provisional || b.Provisional)
}

func (pl *DomainLimits) afterPodUpdate(_ klog.Logger, _ *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a pod event: %w", Name, err)
	}
	// Labels may take the pod out of a policy, or to another workload.
	if sameLimits(before, after) && maps.Equal(before.Labels, after.Labels) {
		return fwk.QueueSkip, nil
	}
	if _, err := pl.limits(after); err != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // still unreadable: trying again would only say so again
	}
	return fwk.Queue, nil
}

// sameLimits compares two states of a pod's annotation. An empty one is not the same
// as none: it is refused, and taking it away mends the pod.
func sameLimits(before, after *corev1.Pod) bool {
	a, inA := before.Annotations[clusterview.DomainLimitsAnnotation]
	b, inB := after.Annotations[clusterview.DomainLimitsAnnotation]
	return inA == inB && a == b
}

func (pl *DomainLimits) afterNodeChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a node event: %w", Name, err)
	}
	limits, err := pl.limits(pod)
	if err != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // no node makes an unreadable pod schedulable
	}
	if helps(before, after, limits) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// helps reports whether a change of a node, nil where there is none, may give a pod
// room that it did not have.
func helps(before, after *corev1.Node, limits []limit.Limit) bool {
	missing := func(v placement.Value) bool { return v.Missing }
	switch {
	case before == nil:
		return !slices.ContainsFunc(clusterview.AppendDomains(nil, after, limits), missing)
	case after == nil:
		// A domain that is nothing but this node has gone with it.
		return slices.ContainsFunc(limits, func(l limit.Limit) bool {
			_, labelled := before.Labels[l.Property.Label]
			return l.Property.Label != "" && labelled
		})
	default:
		return !slices.Equal(clusterview.AppendDomains(nil, before, limits), clusterview.AppendDomains(nil, after, limits))
	}
}
