// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// required makes a node selector of one requirement.
func required(term corev1.NodeSelectorTerm) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
	}
}

// A pod pinned to a node goes there, however full it is, and counts there for
// the pods that come after it.
func TestPodPinnedByNodeAffinity(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(3, 20, zone("zone-a"))
	pin := s.nodes(1, 20, zone("zone-b"))[0]
	s.nodes(3, 20, zone("zone-c"))

	template := s.template("app", "spread="+zoneLabel, required(corev1.NodeSelectorTerm{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{pin}}},
	}))
	template.Labels[workloadLabel] = "pinned"
	for _, name := range []string{"p1", "p2", "p3"} {
		s.pod(name, template)
	}
	if on := s.settled("app", 3).OnNodes(); on[pin] != 3 {
		s.Errorf("pods pinned to %s are on %v", pin, on)
	}

	free := s.template("app", "spread="+zoneLabel)
	free.Labels[workloadLabel] = "pinned"
	for _, name := range []string{"f1", "f2", "f3", "f4", "f5", "f6"} {
		s.pod(name, free)
	}
	o := s.settled("app", 9)
	s.exactly(o, 0, map[string]int{"zone-a": 3, "zone-b": 3, "zone-c": 3})
}

// A Deployment pinned to two of three zones is even over these two.
func TestDeploymentPinnedToTwoZones(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(3, 20, zone("zone-a"))
	s.nodes(2, 20, zone("zone-b"))
	s.nodes(1, 20, zone("zone-c"))
	s.deploy("app", 9, "spread="+zoneLabel, required(corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-b", "zone-c"}}},
	}))
	o := s.settled("app", 9)
	s.counts(o, 0, 5, 4)
	s.even(o)
}
