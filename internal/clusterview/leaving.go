// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// leavingTaints are on nodes that somebody is about to remove, whatever their effects.
var leavingTaints = []string{
	"ToBeDeletedByClusterAutoscaler",
	"DeletionCandidateOfClusterAutoscaler",
	"karpenter.sh/disrupted",
	"karpenter.sh/rebooting",
	"cloud.google.com/impending-node-termination",
	corev1.TaintNodeOutOfService,
	"node.cloudprovider.kubernetes.io/shutdown",
}

// leavingConditions are true of nodes that somebody drains, shuts down or is about to change. They are well-known since Kubernetes 1.37
// (KEP-5683), behind a feature gate: before, and without it, others may mean something else by these names.
var leavingConditions = []corev1.NodeConditionType{
	corev1.NodeGracefulNodeShutdownInProgress, corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenancePlanned, corev1.NodeMaintenanceInProgress,
}

// lifecycleConditions is that feature gate of the process. Its flags are read before any node is.
var lifecycleConditions = sync.OnceValue(func() bool {
	const gate featuregate.Feature = "NodeLifecycleConditions"
	_, known := utilfeature.DefaultMutableFeatureGate.GetAll()[gate] // not of a process that Kubernetes' gates are not linked into
	return known && utilfeature.DefaultFeatureGate.Enabled(gate)
})

// Leaving says by what somebody is about to remove a node, "" if nobody is: it is cordoned, or has a taint of an autoscaler's. Where the
// feature gate NodeLifecycleConditions is on, its conditions may say so too. Such a node is the last one to be given a pod, and its pods
// may be replaced before they are evicted.
func Leaving(node *corev1.Node) string { return leaving(node, lifecycleConditions()) }

func leaving(node *corev1.Node, conditions bool) string {
	for _, t := range node.Spec.Taints {
		if slices.Contains(leavingTaints, t.Key) {
			return "it has the taint " + t.Key
		}
	}
	if node.Spec.Unschedulable {
		return "it is cordoned"
	}
	if by := leavingBy(node); conditions && len(by) > 0 {
		return "it has the condition " + by[0]
	}
	return ""
}

// leavingBy returns the conditions of a node by which somebody is about to remove it.
func leavingBy(node *corev1.Node) (conditions []string) {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Status == corev1.ConditionTrue && slices.Contains(leavingConditions, c.Type) {
			conditions = append(conditions, string(c.Type))
		}
	}
	return conditions
}
