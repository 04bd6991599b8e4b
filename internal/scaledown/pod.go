// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package scaledown

import (
	"math"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/ordinal"
)

// honoring are the kinds of controllers that remove the pods with the lowest deletion cost first.
var honoring = map[string]bool{
	"ReplicaSet":            true,
	"ReplicationController": true,
	"CloneSet":              true, // of OpenKruise
}

// controllerOf returns the controller of a pod that looks at deletion costs, nil if it has none.
func controllerOf(pod *corev1.Pod) *metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && honoring[owner.Kind] {
		return owner
	}
	return nil
}

// indexed returns the StatefulSet of a pod, and the pod's index; nil if it has none.
func indexed(pod *corev1.Pod) (set *metav1.OwnerReference, index int32) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "StatefulSet" {
		return nil, 0
	}
	i, err := strconv.ParseInt(pod.Labels[appsv1.PodIndexLabel], 10, 32)
	if err != nil || i < 0 || i == math.MaxInt32 { // whose number, one more, would be none
		return nil, 0
	}
	return owner, int32(i)
}

// Annotations are those that a pod is bound with.
func Annotations(o ordinal.Ordinal) map[string]string {
	return map[string]string{
		corev1.PodDeletionCost:                strconv.Itoa(int(o.Cost())),
		clusterview.DeletionOrdinalAnnotation: o.String(),
	}
}

// Read returns what a pod has of a number, 0 if nothing; and whether somebody else has written its cost. Ours is what the number
// beside it implies. The number of a StatefulSet's pod is one more than its index.
func Read(pod *corev1.Pod) (n int32, foreign bool) {
	if set, index := indexed(pod); set != nil {
		return index + 1, false
	}
	cost, costed := pod.Annotations[corev1.PodDeletionCost]
	if before, moving := pod.Annotations[clusterview.CostBeforeMoveAnnotation]; moving {
		cost, costed = before, before != ""
	}
	text, numbered := pod.Annotations[clusterview.DeletionOrdinalAnnotation]
	if !costed && !numbered {
		return 0, false
	}
	o, err := ordinal.Parse(text)
	if err != nil || cost != strconv.Itoa(int(o.Cost())) {
		return 0, true
	}
	return o.N, false
}
