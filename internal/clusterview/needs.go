// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Needs tells pods apart as filters do that look at nothing but the pod and one node:
// what they said of a node for one pod holds for all with equal Needs, of one profile,
// as long as neither's levels leave the node out. It is a hash of what they ask for. "" belongs to no pod.
type Needs string

// needs is what such filters read: the node's name and cordon, taints, resources, ports,
// node affinity, constraints and platforms. What differs from pod to pod of one
// template, such as a name, an index or the volume of a token, is not among it.
type needs struct {
	NodeName     string                       `json:",omitempty"`
	NodeSelector map[string]string            `json:",omitempty"`
	Affinity     *corev1.NodeSelector         `json:",omitempty"`
	Tolerations  []corev1.Toleration          `json:",omitempty"`
	OS           *corev1.PodOS                `json:",omitempty"`
	HostNetwork  bool                         `json:",omitempty"`
	Overhead     corev1.ResourceList          `json:",omitempty"`
	Resources    *corev1.ResourceRequirements `json:",omitempty"`
	Containers   []containerNeeds             `json:",omitempty"`
	Init         []containerNeeds             `json:",omitempty"`
	Constraints  string                       `json:",omitempty"`
	Platforms    string                       `json:",omitempty"`
}

type containerNeeds struct {
	Resources     corev1.ResourceRequirements    `json:",omitzero"`
	Ports         []corev1.ContainerPort         `json:",omitempty"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:",omitempty"` // which makes a sidecar, whose resources add up
}

// NeedsOf returns a pod's.
func NeedsOf(pod *corev1.Pod) (Needs, error) {
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
	written, err := json.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("writing down the needs of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	sum := sha256.Sum256(written) // a tenant may write as much as an object holds
	return Needs(sum[:]), nil
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
