// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// away is how far a pod is from its node's being back. All of it is false where a Move has another reason than Disconnect.
type away struct {
	disconnect bool
	// silent says that the node does not answer, or is gone.
	silent bool
	// outdated says that the Deployment has another revision now.
	outdated bool
	// back says that the pod is ready again, and has been for as long as its Deployment wants.
	back bool
	// long says that its node has been ready again for as long as a replacement may take.
	long bool
	// replacementStays says which of the two does, once the pod is back.
	replacementStays bool
}

// awayFacts are those of a pod whose node did not answer when the Move was made.
func (o *objects) awayFacts(now time.Time) (a away) {
	if o.move.Spec.Reason != placementv1alpha1.MoveDisconnect {
		return a
	}
	a.disconnect, a.silent = true, o.node == nil || clusterview.Silent(o.node) != nil
	a.outdated = o.set != nil && o.deployment != nil && Revision(o.deployment) != Revision(o.set)
	a.replacementStays = o.replacementStays
	if a.silent || o.pod == nil || o.set == nil {
		return a
	}
	a.back = o.back(now)
	a.long = now.Sub(readySince(o.node, now)) > time.Duration(o.move.Spec.DeadlineSeconds)*time.Second
	return a
}

// back reports that the pod is as ready as its ReplicaSet wants pods to be. It would remove the pod as the less ready one before that.
func (o *objects) back(now time.Time) bool {
	return o.pod != nil && o.set != nil && readyFor(o.pod, time.Duration(o.set.Spec.MinReadySeconds)*time.Second, now)
}

// readySince is since when a node is ready, now if it is not.
func readySince(node *corev1.Node, now time.Time) time.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return now
}

// kept is the step for a pod that is the Move's, and may come back. Enough says that nothing is lost if it does not.
//
// A pod that is handed back while its node does not answer would have its ReplicaSet remove one that is ready. So nothing but its own
// readiness brings it back, and nothing ends the wait before: who made the Move lets Kubernetes delete the pod when it is lost.
func (f *facts) kept(enough bool) step {
	evicted := func(why string) step {
		return step{phase: placementv1alpha1.MoveEvicting, message: "the pod is being evicted: " + why, action: evict}
	}
	switch {
	case enough && f.outdated && f.phase != placementv1alpha1.MoveEvicting:
		return evicted("it is of an older revision")
	case enough && f.dropped && !f.back:
		return evicted("the Move was deleted")
	case f.back && (f.dropped || f.long && (!enough || f.phase == placementv1alpha1.MoveEvicting)),
		f.back && !f.replacementStays && (f.extra || f.all < f.wanted):
		return step{phase: placementv1alpha1.MoveUndoing, message: "the pod is back, and is being handed back", action: wait}
	case enough && f.back:
		return evicted("its node answers again, and the other one stays")
	case enough && f.long:
		return evicted("its node answers again, and it has not become ready")
	}
	// How many are ready is not told of one that waits: it may wait for hours, and each change would be written.
	phase, ready := placementv1alpha1.MoveReplacing, fmt.Sprintf("; %d of %d other pods are ready", f.ready, f.wanted)
	if enough || f.overdue {
		phase, ready = placementv1alpha1.MoveWaiting, ""
	}
	switch {
	case f.silent:
		return step{phase: phase, message: "the node of the pod does not answer" + ready}
	case f.back:
		return step{phase: phase, message: "the pod is back, and stays until the other one is ready" + ready}
	}
	return step{phase: phase, message: "the node of the pod answers again, and the pod is not ready yet" + ready}
}

// givenUp reports that an eviction has been refused for too long, or the Move was deleted. A pod whose node does not answer cannot be
// handed back, and goes on to be evicted.
func (f *facts) givenUp() bool {
	if f.disconnect {
		return f.back && (f.dropped || f.long)
	}
	return f.overdue
}
