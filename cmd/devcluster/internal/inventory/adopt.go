// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// foreignAnnotations are notes that another cluster's machinery made for itself;
// here they would be read as true of a node that is played.
var foreignAnnotations = []string{
	"kubectl.kubernetes.io/", "node.alpha.kubernetes.io/", "volumes.kubernetes.io/",
	"kubeadm.alpha.kubernetes.io/", "csi.volume.kubernetes.io/",
}

// adopt makes a node of ours out of one described elsewhere: what describes it stays,
// what identified it or was observed of it there goes.
func adopt(from *corev1.Node) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        from.Name,
			Labels:      from.Labels,
			Annotations: map[string]string{},
		},
		Spec: corev1.NodeSpec{
			Unschedulable: from.Spec.Unschedulable,
			ProviderID:    from.Spec.ProviderID,
		},
		Status: corev1.NodeStatus{
			Capacity:        from.Status.Capacity,
			Allocatable:     from.Status.Allocatable,
			Addresses:       from.Status.Addresses,
			Images:          from.Status.Images,
			RuntimeHandlers: from.Status.RuntimeHandlers,
			Features:        from.Status.Features,
			// The operating system and architecture are the node's; the ids are of
			// a machine that is not here.
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            from.Status.NodeInfo.Architecture,
				OperatingSystem:         from.Status.NodeInfo.OperatingSystem,
				KubeletVersion:          from.Status.NodeInfo.KubeletVersion,
				ContainerRuntimeVersion: from.Status.NodeInfo.ContainerRuntimeVersion,
				KernelVersion:           from.Status.NodeInfo.KernelVersion,
				OSImage:                 from.Status.NodeInfo.OSImage,
			},
		},
	}
	for key, value := range from.Annotations {
		if !hasAnyPrefix(key, foreignAnnotations) {
			node.Annotations[key] = value
		}
	}
	for _, taint := range from.Spec.Taints {
		if !setByController(taint) {
			taint.TimeAdded = nil
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Labels[corev1.LabelHostname] == "" {
		node.Labels[corev1.LabelHostname] = node.Name
	}
	return node
}

// setByController tells taints that the node lifecycle controller takes from a
// node's conditions. They spoke of the state there; here it sets its own, and one
// that was copied would never be lifted.
func setByController(taint corev1.Taint) bool {
	switch taint.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable,
		corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable:
		return true
	}
	return false
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}
