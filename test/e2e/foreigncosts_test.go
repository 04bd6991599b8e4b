// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sentinel is the cost that Karpenter's controller of deletion costs gives the pods of a node that it is about to disrupt.
const sentinel = "-2147483648"

// Somebody else writes the cost of one pod when all are bound, as Karpenter does. Nobody touches it, pods that come later get no cost, and
// costs are not repaired any more.
func TestScaleDownBesideAnotherWriter(t *testing.T) {
	s := begin(t, spread, byZone)
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		s.nodes(2, 50, zone(name))
	}
	s.label(repairLabel)
	s.deploy("app", 6, "")
	victim := s.settled("app", 6).Pods[0].Name
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, corev1.PodDeletionCost, sentinel)
	_, err := s.client.CoreV1().Pods(s.ns).Patch(s.ctx, victim, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err, "writing a cost")
	costs := func() map[string]string {
		of := make(map[string]string)
		for _, p := range s.settled("app", 9).Pods {
			of[p.Name] = p.Annotations[corev1.PodDeletionCost]
		}
		return of
	}
	s.scale("app", 9)
	before := costs()
	without := 0
	for _, cost := range before {
		if cost == "" {
			without++
		}
	}
	if before[victim] != sentinel || without != 3 {
		t.Errorf("pod %s is to keep its cost, and three are to have none: %v", victim, before)
	}
	s.tells("DeletionCostForeign", "Deployment", "app")
	s.looked(2, []string{"deletioncost"}, func() error { // at the second look pods have been as they are for more than two seconds
		if after := costs(); !maps.Equal(before, after) {
			return fmt.Errorf("the costs were %v, and are %v", before, after)
		}
		return nil
	})
	s.wroteNoPods()
	s.scale("app", 8) // and whoever wrote it gets what it wants
	for _, p := range s.settled("app", 8).Pods {
		if p.Name == victim {
			t.Errorf("pod %s, whose cost is the lowest, is there", victim)
		}
	}
}
