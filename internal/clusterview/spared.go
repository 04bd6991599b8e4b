// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The annotations by which autoscalers are told to leave a pod where it is.
const (
	// SafeToEvictAnnotation is Cluster Autoscaler's.
	SafeToEvictAnnotation  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	doNotDisruptAnnotation = "karpenter.sh/do-not-disrupt"
)

// Spared says by which annotation a pod asks to be left where it is, "" for none. Whoever takes a pod away that could stay asks this first. Karpenter's may
// hold a time since the pod's start instead of "true"; one that cannot be read asks for nothing, as with Karpenter.
func Spared(pod *corev1.Pod, now time.Time) (by string) {
	if value := pod.Annotations[SafeToEvictAnnotation]; value == "false" {
		return SafeToEvictAnnotation + ": " + value
	}
	value := pod.Annotations[doNotDisruptAnnotation]
	if value == "true" {
		return doNotDisruptAnnotation + ": " + value
	}
	// Nobody knows of a pod that has not started how long it has run.
	since, start := time.Duration(0), pod.Status.StartTime
	if start != nil {
		since = now.Sub(start.Time)
	}
	if d, err := time.ParseDuration(value); err == nil && d > 0 && since < d {
		return doNotDisruptAnnotation + ": " + value
	}
	return ""
}
