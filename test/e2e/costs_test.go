// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// repairLabel is on the namespaces of the stories whose deletion costs are repaired.
const repairLabel = "e2e.espalier.dev/repair"

// repairFlags have the controller look at those namespaces.
var repairFlags = []string{"--repair-deletion-costs=Backfill", "--repair-namespace-selector=" + repairLabel, "--repair-quiet=2s"}

// zoneOf are the zones of the story's nodes, by the nodes' names.
func (s *story) zoneOf() map[string]string {
	s.Helper()
	zones := make(map[string]string)
	for _, n := range s.ownNodes() {
		zones[n.Name] = n.Labels[zoneLabel]
	}
	return zones
}

// numbered waits until the pods of an app have the numbers from 1 on in each zone, and none twice.
func (s *story) numbered(app string) {
	s.Helper()
	s.until("all pods to have their numbers", func() error {
		zones, numbers := s.zoneOf(), make(map[string][]int)
		for _, p := range s.podsOf(app) {
			var n int
			if _, err := fmt.Sscan(p.Annotations["espalier.dev/deletion-ordinal"], &n); err != nil || p.Annotations[corev1.PodDeletionCost] != fmt.Sprint(-n) {
				return fmt.Errorf("pod %s has the annotations %v", p.Name, p.Annotations)
			}
			numbers[zones[p.Spec.NodeName]] = append(numbers[zones[p.Spec.NodeName]], n)
		}
		for zone, of := range numbers {
			slices.Sort(of)
			for i, n := range of {
				if n != i+1 {
					return fmt.Errorf("%s has the numbers %v", zone, of)
				}
			}
		}
		return nil
	})
}

// removedInAnyOrder has the pods of an app bound without costs, from when it returns.
func (s *story) removedInAnyOrder(app string) {
	s.Helper()
	s.governs(app, app, placementv1alpha1.PlacementPolicySpec{ScaleDown: placementv1alpha1.ScaleDownAny})
	// The scheduler hears of the policy and of pods by two watches.
	s.until("the scheduler to know the policy", func() error {
		cost, costed := s.deployed(app, 1, "").Pods[0].Annotations[corev1.PodDeletionCost]
		s.deleted(app)
		return errorIf(costed, "a pod was bound with the cost %s", cost)
	})
}

// Pods that were bound without costs get some, and what is left of them is even.
func TestBackfillOfDeletionCosts(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.zones(50, 10, 5, 2)
	s.removedInAnyOrder("app")
	for _, pod := range s.deployed("app", 40, "").Pods {
		if cost, there := pod.Annotations[corev1.PodDeletionCost]; there {
			t.Fatalf("pod %s has the cost %s", pod.Name, cost)
		}
	}
	s.label(repairLabel)
	s.numbered("app")
	s.counts(s.scaledTo("app", 10), 0, 4, 3, 3)
}

// Nodes are lost while their zone takes no other pods. The gaps that they leave are closed.
func TestRepairOfDeletionCosts(t *testing.T) {
	s := begin(t, spread, byZone)
	zones := s.zones(50, 3, 3, 3)
	s.deployed("app", 36, "")
	s.cordon(true, zones[0]...)
	s.lose(zones[0][0])
	s.settled("app", 36)
	s.label(repairLabel)
	s.numbered("app")
}

// sentinel is the cost that Karpenter's controller of deletion costs gives the pods of a node that it is about to disrupt.
const sentinel = "-2147483648"

// Somebody else writes the cost of one pod when all are bound, as Karpenter does. Nobody touches it, pods that come later get no cost, and
// costs are not repaired any more.
func TestScaleDownBesideAnotherWriter(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 2, 2, 2)
	s.label(repairLabel)
	victim := s.deployed("app", 6, "").Pods[0].Name
	s.alter(named[corev1.Pod](s, victim), `{"metadata":{"annotations":{%q:%q}}}`, corev1.PodDeletionCost, sentinel)
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
		after := costs()
		return errorIf(!maps.Equal(before, after), "the costs were %v, and are %v", before, after)
	})
	s.wroteNoPods()
	s.scale("app", 8) // and whoever wrote it gets what it wants
	for _, p := range s.settled("app", 8).Pods {
		if p.Name == victim {
			t.Errorf("pod %s, whose cost is the lowest, is there", victim)
		}
	}
}
