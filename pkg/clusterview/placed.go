// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

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
