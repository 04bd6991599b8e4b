// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// hanging is how long a pod that is on a node may take to start.
const hanging = time.Minute

// waitsWell are the reasons for which a container waits that are no failures.
var waitsWell = []string{"", "ContainerCreating", "PodInitializing"}

// failingSince returns since when a pod on a node fails, and false if it does not: one of its containers waits to be started again, or it
// hangs.
func failingSince(pod *corev1.Pod, now time.Time) (time.Time, bool) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return time.Time{}, false
	}
	since, scheduled := time.Time{}, pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue:
			return time.Time{}, false
		case c.Type == corev1.PodReady:
			since = c.LastTransitionTime.Time
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue:
			scheduled = c.LastTransitionTime.Time
		}
	}
	if since.IsZero() {
		since = scheduled
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && !slices.Contains(waitsWell, w.Reason) {
			return since, true
		}
	}
	return scheduled, pod.Status.Phase == corev1.PodPending && now.Sub(scheduled) >= hanging
}
