// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
func (pl *DomainLimits) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A pod of the same revision goes, and leaves its place in all its domains. It
		// does so as soon as it is terminating, which has no event of its own; or it is
		// relabelled, and is of another workload from then on.
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Update | fwk.Delete}, QueueingHintFn: refusal.HintIf(Name, "pod", pl.afterPodLeft)},
		// A user mends or changes the pod's annotation, which has no event of its own,
		// or relabels it into a workload that has room.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "pod", pl.afterPodUpdate)},
		// A node brings a domain with room, moves to another domain and takes its pods
		// along, or goes and takes its pods out of theirs.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel | fwk.Delete}, QueueingHintFn: refusal.HintIf(Name, "node", pl.afterNodeChange)},
	}, nil
}

func (pl *DomainLimits) afterPodLeft(pod *corev1.Pod, before, after *corev1.Pod) bool {
	// A terminating pod has left its place already. But it may be gone before the scheduler
	// has seen it terminating, so that a deletion is always looked at.
	if after != nil && !podcount.Counts(before) {
		return false
	}
	waiting := pl.identifier.Identify(pod)
	if !alike(waiting, pl.identifier.Identify(before)) {
		return false
	}
	return after == nil || !podcount.Counts(after) || !alike(waiting, pl.identifier.Identify(after))
}

// alike reports whether two pods take room from each other, as far as that is known:
// whose owner is not known yet may turn out to be of any workload of its namespace.
func alike(a, b clusterview.Identity) bool {
	if a.SameRevision(b) {
		return true
	}
	return a.Workload.Namespace == b.Workload.Namespace && a.Revision == b.Revision && (a.Provisional || b.Provisional)
}

func (pl *DomainLimits) afterPodUpdate(_ *corev1.Pod, before, after *corev1.Pod) bool {
	// Labels may take the pod out of a policy, or to another workload.
	if clusterview.SameAnnotation(before, after, clusterview.DomainLimitsAnnotation) && maps.Equal(before.Labels, after.Labels) {
		return false
	}
	_, err := pl.limits(after)
	return err == nil // what is still unreadable would only be refused again
}

func (pl *DomainLimits) afterNodeChange(pod *corev1.Pod, before, after *corev1.Node) bool {
	limits, err := pl.limits(pod)
	if err != nil {
		return false // no node makes an unreadable pod schedulable
	}
	return helps(before, after, limits)
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
