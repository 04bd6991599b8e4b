// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// failing is since when pods fail: a container that is restarted is ready for a moment, and its pod says that it was so a moment ago.
type failing map[types.UID]failures

type failures struct{ since, seen time.Time }

// memory is how long a pod must have been well to be one that has never failed. A kubelet waits for less between two restarts.
const memory = 6 * time.Minute

// since notes how a pod is now, and returns since when it has failed again and again.
func (f failing) since(pod types.UID, since time.Time, fails bool, now time.Time) time.Time {
	before, known := f[pod]
	if !fails {
		return since
	}
	// Nobody forgets while no node is marked.
	if known && now.Sub(before.seen) < memory && before.since.Before(since) {
		since = before.since
	}
	f[pod] = failures{since, now}
	return since
}

func (f failing) forget(now time.Time) {
	for pod, is := range f {
		if now.Sub(is.seen) >= memory {
			delete(f, pod)
		}
	}
}
