// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What says that somebody is about to remove a node, and what of it makes the node a last one for new pods: the rest keeps them off. Conditions
// say so where the gate is on.
func TestLeaving(t *testing.T) {
	tainted := func(key string, effect corev1.TaintEffect) corev1.NodeSpec {
		return corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: effect}}}
	}
	says := func(is corev1.NodeConditionType, status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: is, Status: status}}
	}
	for name, tc := range map[string]struct {
		spec          corev1.NodeSpec
		conditions    []corev1.NodeCondition
		off, on, soft string // without the gate, and with it
	}{
		"nothing":                {},
		"another taint":          {spec: tainted("a", corev1.TaintEffectNoSchedule)},
		"a cordon":               {spec: corev1.NodeSpec{Unschedulable: true}, off: "it is cordoned", on: "it is cordoned"},
		"an autoscaler removes":  {spec: tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule), off: "it has the taint ToBeDeletedByClusterAutoscaler", on: "it has the taint ToBeDeletedByClusterAutoscaler"},
		"an autoscaler may":      {spec: tainted("DeletionCandidateOfClusterAutoscaler", corev1.TaintEffectPreferNoSchedule), off: "it has the taint DeletionCandidateOfClusterAutoscaler", on: "it has the taint DeletionCandidateOfClusterAutoscaler", soft: "DeletionCandidateOfClusterAutoscaler="},
		"Karpenter":              {spec: tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule), off: "it has the taint karpenter.sh/disrupted", on: "it has the taint karpenter.sh/disrupted"},
		"out of service":         {spec: tainted(corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute), off: "it has the taint node.kubernetes.io/out-of-service", on: "it has the taint node.kubernetes.io/out-of-service"},
		"a planned change":       {conditions: says("MaintenancePlanned", corev1.ConditionTrue), on: "it has the condition MaintenancePlanned", soft: "MaintenancePlanned="},
		"no planned change":      {conditions: says("MaintenancePlanned", corev1.ConditionFalse)},
		"an unknown one":         {conditions: says("MaintenancePlanned", corev1.ConditionUnknown)},
		"a change":               {conditions: says("MaintenanceInProgress", corev1.ConditionTrue), on: "it has the condition MaintenanceInProgress", soft: "MaintenanceInProgress="},
		"a drain":                {conditions: says("DrainInProgress", corev1.ConditionTrue), on: "it has the condition DrainInProgress", soft: "DrainInProgress="},
		"a drain that has ended": {conditions: says("Drained", corev1.ConditionTrue), on: "it has the condition Drained", soft: "Drained="},
		"a shutdown":             {conditions: says("GracefulNodeShutdownInProgress", corev1.ConditionTrue), on: "it has the condition GracefulNodeShutdownInProgress", soft: "GracefulNodeShutdownInProgress="},
		"pressure":               {conditions: says(corev1.NodeDiskPressure, corev1.ConditionTrue)},
		"a cordon and a drain":   {spec: corev1.NodeSpec{Unschedulable: true}, conditions: says("DrainInProgress", corev1.ConditionTrue), off: "it is cordoned", on: "it is cordoned", soft: "DrainInProgress="},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Spec: tc.spec, Status: corev1.NodeStatus{Conditions: tc.conditions}}
			if off, on := leaving(node, false), leaving(node, true); off != tc.off || on != tc.on {
				t.Errorf("it is about to be removed for %q, with the gate for %q; want %q and %q", off, on, tc.off, tc.on)
			}
			if got := soft(node, true); got != tc.soft {
				t.Errorf("what makes it soft is %q, want %q", got, tc.soft)
			}
			if got := soft(node, false); got != "" && len(tc.conditions) > 0 {
				t.Errorf("without the gate it is soft by %q", got)
			}
		})
	}
}

// A pod that tolerates everything goes to a node that is being drained, as to one with any other taint.
func TestToleratesAnEndOfANode(t *testing.T) {
	by := soft(&corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionTrue}}}}, true)
	if ToleratesSoft(nil, by) || !ToleratesSoft([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, by) {
		t.Error("a pod without tolerations tolerates it, or one that tolerates all does not")
	}
}
