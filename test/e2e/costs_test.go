// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// rollout is what is replaced: so many nodes with so many pods each, of Deployments with so many replicas.
type rollout struct{ nodes, perNode, replicas int }

// replacing is that of the scenario, or one that shows the same in less time.
func replacing() rollout {
	if *wholeFlag {
		return rollout{nodes: 30, perNode: 20, replicas: 10}
	}
	return rollout{nodes: 6, perNode: 10, replicas: 5}
}

func (r rollout) pods() int { return r.nodes * r.perNode }
func (r rollout) apps() int { return r.pods() / r.replicas }

// All nodes of a cluster are replaced: one joins, an old one is drained and removed, and so on. If a pod is never placed on a node that is still
// to be drained, it is placed once more, and no pod twice.
func TestRollingReplace(t *testing.T) {
	for name, tell := range map[string]func(s *story) (marked func(old []string), joined func(node string)){
		"marked": func(s *story) (func([]string), func(string)) {
			return s.softTaint, func(string) {}
		},
		"ages": func(s *story) (func([]string), func(string)) {
			s.karpenter()
			return func(old []string) {
				for i, node := range old {
					s.claimed(node, fmt.Sprintf("%dh", 24+i))
				}
				s.allEnd()
			}, func(node string) { s.claimed(node, "720h") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, lifetimes, byZone)
			s.must(startStock(), "starting the stock scheduler")
			marked, joined := tell(s)
			stock := s.replaced(replacing(), corev1.DefaultSchedulerName, marked, joined)
			ours := s.replaced(replacing(), s.scheduler, marked, joined)
			s.Logf("moves a pod: %.3f with the stock scheduler, %.3f with ours", stock, ours)
			if ours > 1.05 {
				t.Errorf("each pod is placed anew %.3f times, and %.3f times by the stock scheduler", ours, stock)
			}
		})
	}
}

// replaced has a scheduler place pods on nodes that are then replaced one after the other, and returns how often a pod was placed anew. Marked is
// told of all nodes before the first is drained, and joined of each that is in the place of one.
func (s *story) replaced(r rollout, scheduler string, marked func(old []string), joined func(node string)) float64 {
	s.Helper()
	// Zones of its own: which of two zones is less loaded is said of all nodes in them, those of other stories too.
	labels := func(i int) map[string]string { return zone(fmt.Sprintf("zone-%s-%d", s.name, i%3)) }
	var old, young []string
	for i := range r.nodes {
		old = append(old, s.node(r.perNode+5, labels(i)))
	}
	s.live(old...)
	seen := s.watch()
	placed := func(n int) {
		s.Helper()
		s.until(fmt.Sprintf("%d pods to be placed", n), func() error {
			_, bound := seen.Bound()
			return errorIf(bound != n, "%d are", bound)
		})
	}
	app := func(i int) string { return fmt.Sprintf("%s-%d", scheduler, i) }
	for i := range r.apps() {
		s.deploy(app(i), int32(r.replicas), "", by(scheduler))
	}
	placed(r.pods())
	marked(old)
	moves := 0
	for i, node := range old {
		young = append(young, s.nodes(1, r.perNode+5, labels(i))...)
		joined(young[i])
		there := len(s.podsWith("", node))
		s.drained(node)
		moves += there
		placed(r.pods() + moves)
		s.delete(named[corev1.Node](s, node))
	}
	uneven := 0
	for i := range r.apps() {
		if len(s.settled(app(i), r.replicas).Check()) > 0 {
			uneven++
		}
		s.delete(named[appsv1.Deployment](s, app(i)))
	}
	s.Logf("%s: %d pods of %d were placed anew, and %d of %d Deployments are not as even as they can be", scheduler, moves, r.pods(), uneven, r.apps())
	if scheduler == s.scheduler && uneven > 0 {
		s.Errorf("%d of %d Deployments are not as even as they can be", uneven, r.apps())
	}
	for i := range r.apps() {
		s.settled(app(i), 0)
	}
	s.lose(young...)
	return float64(moves) / float64(r.pods())
}

// karpenter has the cluster know NodeClaims until the story ends: nothing of Karpenter but what says when a node ends.
func (s *story) karpenter() {
	s.Helper()
	s.create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "nodeclaims.karpenter.sh"},
		"spec": map[string]any{
			"group": "karpenter.sh", "scope": "Cluster",
			"names": map[string]any{"kind": "NodeClaim", "listKind": "NodeClaimList", "singular": "nodeclaim", "plural": "nodeclaims"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}})
}

// claimed makes a NodeClaim of a node, which expires after so long.
func (s *story) claimed(node, expireAfter string) {
	s.Helper()
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": node},
		"spec": map[string]any{"expireAfter": expireAfter}, "status": map[string]any{"nodeName": node},
	}}
	s.until("a NodeClaim of node "+node, func() error { return world.objects.Create(s.ctx, claim) })
}
