// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// leavingTaints are on nodes that somebody is about to remove, whatever their effects.
var leavingTaints = []string{
	"ToBeDeletedByClusterAutoscaler",
	"DeletionCandidateOfClusterAutoscaler",
	"karpenter.sh/disrupted",
	corev1.TaintNodeOutOfService,
}

// Leaving says by what somebody is about to remove a node, "" if nobody is: it is cordoned, or has a taint of an autoscaler's.
func Leaving(node *corev1.Node) string {
	for _, t := range node.Spec.Taints {
		if slices.Contains(leavingTaints, t.Key) {
			return "it has the taint " + t.Key
		}
	}
	if node.Spec.Unschedulable {
		return "it is cordoned"
	}
	return ""
}
