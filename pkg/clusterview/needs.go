// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// needs is what filters read of a pod that look at nothing but the pod and one node:
// the node's name and cordon, taints, resources, ports, node affinity, constraints and
// platforms. What differs from pod to pod of one template, such as a name, an index or
// the volume of a token, is not among it. (The fields are exported for the comparison,
// which panics at any other.)
type needs struct {
	NodeName               string
	NodeSelector           map[string]string
	Affinity               *corev1.NodeSelector
	Tolerations            []corev1.Toleration
	OS                     *corev1.PodOS
	HostNetwork            bool
	Overhead               corev1.ResourceList
	Resources              *corev1.ResourceRequirements
	Containers, Init       []containerNeeds
	Constraints, Platforms string
}

type containerNeeds struct {
	Resources     corev1.ResourceRequirements
	Ports         []corev1.ContainerPort
	RestartPolicy *corev1.ContainerRestartPolicy // which makes a sidecar, whose resources add up
}

// SameNeeds reports whether filters that look at nothing but a pod and one node
// cannot tell two pods apart, so that what they said of a node for one pod holds for
// the other.
func SameNeeds(a, b *corev1.Pod) bool {
	return a == b || equality.Semantic.DeepEqual(needsOf(a), needsOf(b))
}

func needsOf(pod *corev1.Pod) needs {
	n := needs{
		NodeName:     pod.Spec.NodeName,
		NodeSelector: pod.Spec.NodeSelector,
		Tolerations:  pod.Spec.Tolerations,
		OS:           pod.Spec.OS,
		HostNetwork:  pod.Spec.HostNetwork,
		Overhead:     pod.Spec.Overhead,
		Resources:    pod.Spec.Resources,
		Containers:   containersOf(pod.Spec.Containers),
		Init:         containersOf(pod.Spec.InitContainers),
		Constraints:  pod.Annotations[ConstraintsAnnotation],
		Platforms:    pod.Annotations[PlatformsAnnotation],
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		n.Affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return n
}

func containersOf(containers []corev1.Container) []containerNeeds {
	all := make([]containerNeeds, len(containers))
	for i := range containers {
		c := &containers[i]
		all[i] = containerNeeds{c.Resources, c.Ports, c.RestartPolicy}
	}
	return all
}

// Prefers reports whether a pod has preferences of its own about nodes or about pods
// beside it, which break the ties of its placement.
func Prefers(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	return a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}
