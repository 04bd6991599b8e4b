// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// repairLabel is on the namespaces of the stories whose deletion costs are repaired.
const repairLabel = "e2e.espalier.dev/repair"

// repairFlags have the controller look at those namespaces.
var repairFlags = []string{"--repair-deletion-costs=Backfill", "--repair-namespace-selector=" + repairLabel, "--repair-quiet=2s"}

// numbered waits until the pods of an app have the numbers from 1 on in each zone, and none twice.
func (s *story) numbered(app string) {
	s.Helper()
	s.until("all pods to have their numbers", func() error {
		nodes, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: storyLabel + "=" + s.name})
		if err != nil {
			return err
		}
		zones := make(map[string]string)
		for _, n := range nodes.Items {
			zones[n.Name] = n.Labels[zoneLabel]
		}
		pods, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		numbers := make(map[string][]int)
		for _, p := range pods.Items {
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
	p := &placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: app},
		Spec:       placementv1alpha1.PlacementPolicySpec{PodSelector: *selects(app), ScaleDown: placementv1alpha1.ScaleDownAny},
	}
	s.until("policy "+app+" to be created", func() error { return client.IgnoreAlreadyExists(s.policies().Create(s.ctx, p)) })
	// The scheduler hears of the policy and of pods by two watches.
	s.until("the scheduler to know the policy", func() error {
		s.deploy(app, 1, "")
		cost, costed := s.settled(app, 1).Pods[0].Annotations[corev1.PodDeletionCost]
		s.deleted(app)
		if costed {
			return fmt.Errorf("a pod was bound with the cost %s", cost)
		}
		return nil
	})
}

// Pods that were bound without costs get some, and what is left of them is even.
func TestBackfillOfDeletionCosts(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.unequalZones()
	s.removedInAnyOrder("app")
	s.deploy("app", 40, "")
	for _, pod := range s.settled("app", 40).Pods {
		if cost, there := pod.Annotations[corev1.PodDeletionCost]; there {
			t.Fatalf("pod %s has the cost %s", pod.Name, cost)
		}
	}
	s.label(repairLabel)
	s.numbered("app")
	s.scale("app", 10)
	s.counts(s.settled("app", 10), 0, 4, 3, 3)
}

// Nodes are lost while their zone takes no other pods. The gaps that they leave are closed.
func TestRepairOfDeletionCosts(t *testing.T) {
	s := begin(t, spread, byZone)
	var zones [][]string
	for _, z := range []string{"zone-a", "zone-b", "zone-c"} {
		zones = append(zones, s.nodes(3, 50, zone(z)))
	}
	s.deploy("app", 36, "")
	s.settled("app", 36)
	s.cordon(true, zones[0]...)
	s.lose(zones[0][0])
	s.settled("app", 36)
	s.label(repairLabel)
	s.numbered("app")
}
