// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podoutcome

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Placed is when a pod came to its node, by the clock of the control plane: what a node
// says of the pod cannot have been before, however slow the node's own clock is. It is
// when the pod was made if nothing says more.
func Placed(pod *corev1.Pod) time.Time {
	if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// completed is when a pod that has succeeded did as far as its conditions show, zero if
// they do not: garbage collection of containers, and players of nodes, leave no others.
func completed(pod *corev1.Pod) (at time.Time) {
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		if c := condition(pod, t); c != nil && c.Status != corev1.ConditionTrue {
			at = Latest(at, c.LastTransitionTime.Time)
		}
	}
	return at
}
