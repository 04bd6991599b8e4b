// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// everyPod is concerned when anything is known for the first time.
func everyPod(*corev1.Pod) bool { return true }

// differently are the pods of a namespace that another policy governs than before,
// or the same one with another spec.
func differently(namespace string, before, after []*clusterview.Policy) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return pod.Namespace == namespace && clusterview.Governing(before, pod) != clusterview.Governing(after, pod)
	}
}
