// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// rebalanceLabel is on the namespaces of the stories whose pods are rebalanced.
const rebalanceLabel = "e2e.espalier.dev/rebalance"

// rebalanceFlags have the controller look at those namespaces, and wait for no longer than it has to be seen that it waits.
var rebalanceFlags = []string{
	"--rebalance=Enabled", "--rebalance-namespace-selector=" + rebalanceLabel,
	"--rebalance-quiet=3s", "--rebalance-node-ready=2s", "--rebalance-pod-age=2s", "--rebalance-per-hour=10000",
}

// rebalanced has the story's pods rebalanced from now on.
func (s *story) rebalanced() {
	s.Helper()
	s.label(rebalanceLabel)
}

// label puts a label on the story's namespace.
func (s *story) label(key string) {
	s.Helper()
	s.alter(named[corev1.Namespace](s, s.ns), `{"metadata":{"labels":{%q:""}}}`, key)
}

// moves are the Moves of the story.
func (s *story) moves() []placementv1alpha1.Move {
	s.Helper()
	var moves placementv1alpha1.MoveList
	s.must(world.objects.List(s.ctx, &moves, client.InNamespace(s.ns)), "listing Moves")
	return moves.Items
}

// movedExactly waits for so many Moves to be done, and fails the story if there are others, then or for some time after.
func (s *story) movedExactly(want int) {
	s.Helper()
	for moved := range want {
		s.moved(moved+1, placementv1alpha1.MoveDone) // each has its time: they are made one after the other
	}
	s.still(want)
}

// movesAtOnce watches the Moves of the story, and fails it if there are more at a time than so many that have not ended, until the returned
// function is called.
func (s *story) movesAtOnce(most int) (stop func()) {
	s.Helper()
	c, err := client.NewWithWatch(world.config, client.Options{})
	s.must(err, "making a client for Moves")
	w, err := c.Watch(s.ctx, &placementv1alpha1.MoveList{}, client.InNamespace(s.ns))
	s.must(err, "watching Moves")
	var watching sync.WaitGroup
	watching.Go(func() {
		under := make(map[string]bool)
		highest := 0
		for e := range w.ResultChan() {
			if m, is := e.Object.(*placementv1alpha1.Move); is {
				if delete(under, m.Name); !m.Status.Phase.Ended() && e.Type != watch.Deleted {
					under[m.Name] = true
				}
				highest = max(highest, len(under))
			}
		}
		if highest == 0 || highest > most {
			s.Errorf("%d Moves were under way at a time, want at most %d", highest, most)
		}
	})
	return func() {
		w.Stop()
		watching.Wait()
	}
}

// A zone is emptied and comes back. As many pods move as are misplaced, and no more.
func TestRebalanceWhenAZoneReturns(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	back := s.zones(20, 2, 2, 2)[2]
	s.cordon(true, back...)
	pods := sized(30, 12)
	s.deploy("app", int32(pods), "")
	s.counts(s.settled("app", pods), 0, pods/2, pods/2, 0)
	s.cordon(false, back...)
	stop := s.neverBelow("app", pods)
	s.rebalanced()
	s.movedExactly(pods / 3)
	stop()
	s.counts(s.settled("app", pods), 0, pods/3, pods/3, pods/3)
	s.wroteNoReplicas("app")
	s.wroteToPods(map[string]int{"patch pods": pods / 3, "create pods/eviction": pods / 3})
}

// A node joins ten that are full of pods, and is not given all of what is moved at once.
func TestRebalanceWhenANodeJoins(t *testing.T) {
	s := begin(t, moves)
	full := s.nodes(10, 20, zone("zone-a"))
	s.eachHas(s.deployed("app", 100, ""), 10, full...)
	joined := s.nodes(1, 20, zone("zone-a"))[0]
	oneAtATime := s.movesAtOnce(1)
	s.rebalanced()
	s.movedExactly(9)
	oneAtATime()
	s.eachHas(s.settled("app", 100), 9, joined)
}

// Where no pod would be better off, none is moved: the other zone is full or tainted, or a hard constraint is in the way. Nor is one where
// zones and nodes cannot both be even, which an evicting descheduler goes on about for ever.
func TestRebalanceMovesNothingForNothing(t *testing.T) {
	t.Parallel()
	t.Run("full", func(t *testing.T) {
		s := begin(t, moves, byZone)
		s.nodes(2, 20, zone("zone-a"))
		s.nodes(1, 2, zone("zone-b"))
		s.counts(s.deployed("app", 12, ""), 0, 10, 2)
		s.rebalanced()
		s.still(0)
	})
	t.Run("tainted", func(t *testing.T) {
		s := begin(t, moves.core(), byZone)
		node := s.zones(20, 2, 1)[1][0]
		s.taint(node, `[{"key":"e2e.espalier.dev/keep-off","effect":"NoSchedule"}]`)
		s.counts(s.deployed("app", 12, ""), 0, 12, 0)
		s.rebalanced()
		s.still(0)
		s.taint(node, `null`) // nothing else has kept them where they are
		s.movedExactly(6)
	})
	t.Run("hard-constraint", func(t *testing.T) {
		s := begin(t, moves, byZone)
		s.zones(20, 3, 1)
		s.counts(s.deployed("app", 4, "", oneOnANode("app")), 0, 3, 1)
		s.rebalanced()
		s.still(0)
	})
	t.Run("zone-and-host", func(t *testing.T) {
		s := begin(t, moves, byZone)
		s.zones(20, 5, 2, 2)
		for app, pods := range map[string]int32{"app": 7, "more": 9} { // of nine, zones b and c have two on a node, and two nodes of zone a have none
			s.deploy(app, pods, "", constrained(app, zoneLabel, corev1.LabelHostname), func(spec *corev1.PodSpec) {
				spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.DoNotSchedule
			})
			s.even(s.settled(app, int(pods)))
		}
		s.rebalanced()
		s.stillFor(0, 30*time.Minute)
	})
}

// oneOnANode allows no two pods of an app on one node.
func oneOnANode(app string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: selects(app), TopologyKey: corev1.LabelHostname,
		}}}}
	}
}

// taint gives a node these taints, and no others.
func (s *story) taint(node, taints string) {
	s.Helper()
	s.alter(named[corev1.Node](s, node), `{"spec":{"taints":%s}}`, taints)
}

// softTaint puts a taint on nodes that keeps pods away where there are others.
func (s *story) softTaint(nodes []string) {
	s.Helper()
	for _, node := range nodes {
		s.taint(node, `[{"key":"DeletionCandidateOfClusterAutoscaler","effect":"PreferNoSchedule"}]`)
	}
}

// Zones of one and three nodes, and constraints over zones and hosts, which cannot both be met. When the one comes back as many pods move as
// it takes for the zones to be even, and then none: hosts come after.
func TestRebalanceOfConflictingLevels(t *testing.T) {
	s := begin(t, moves, byZone)
	one := s.zones(20, 1, 3)[0][0]
	s.cordon(true, one)
	s.exactly(s.deployed("app", 8, "", constrained("app", zoneLabel, corev1.LabelHostname)), 0, map[string]int{"zone-a": 0, "zone-b": 8})
	s.cordon(false, one)
	stop := s.neverBelow("app", 8)
	s.rebalanced()
	s.movedExactly(4)
	stop()
	o := s.settled("app", 8)
	s.exactly(o, 0, map[string]int{"zone-a": 4, "zone-b": 4})
	s.even(o)
}

// The replacement lands where the pod came from. The pod is handed back, with the same UID, and the Deployment is left alone for a while.
func TestRebalanceIsUndone(t *testing.T) {
	s := begin(t, moves, byZone)
	s.nodes(1, 20, zone("zone-a"))
	before := s.deployed("app", 2, "").Pods
	time.Sleep(time.Until(before[0].CreationTimestamp.Add(2 * time.Second))) // times are of whole seconds, and a replacement is younger than its Move
	stop := s.neverBelow("app", 2)
	s.move(&before[0], placementv1alpha1.MoveSpec{
		Reason: placementv1alpha1.MoveRebalance, Avoid: &placementv1alpha1.Domain{TopologyKey: zoneLabel, Value: new("zone-a")},
	})
	s.moved(1, placementv1alpha1.MoveUndone)
	stop()
	after := s.settled("app", 2).Pods
	for _, p := range before {
		if !slices.ContainsFunc(after, func(is corev1.Pod) bool { return is.UID == p.UID }) {
			t.Errorf("pod %s is not there any more", p.Name)
		}
	}
	s.nodes(1, 20, zone("zone-b")) // which would be a better place
	s.rebalanced()
	s.still(1)
	s.exactly(s.settled("app", 2), 0, map[string]int{"zone-a": 2})
}
