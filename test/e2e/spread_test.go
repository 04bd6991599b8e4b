// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// What the tree makes of any cluster is told by the data and the properties of pkg/placement/tree and pkg/plugins/spreadtree. These are the
// stories in which the API server, a controller or a node has a part.

// A zone that goes leaves its pods to the others, and when it comes back it gets new pods until it is level with them.
func TestZoneGoesAndComesBack(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.zones(50, 2, 2)
	lost := s.nodes(2, 50, zone("zone-c"))
	o := s.deployed("app", 12, "spread="+zoneLabel)
	s.counts(o, 0, 4, 4, 4)
	s.even(o)

	s.lose(lost...)
	o = s.settled("app", 12)
	s.counts(o, 0, 6, 6)
	s.even(o)

	s.nodes(2, 50, zone("zone-c"))
	before := o.OnNodes()
	o = s.scaledTo("app", 16)
	s.exactly(o, 0, map[string]int{"zone-a": 6, "zone-b": 6, "zone-c": 4})
	o.Fix(before)
	s.even(o)

	o = s.scaledTo("app", 19)
	s.counts(o, 0, 7, 6, 6)
}

// Zones have their shares, those that are said and those that their nodes have of CPU, and a rack is filled before another is begun.
func TestSharesAndPack(t *testing.T) {
	shares := byZone
	shares.Weights = map[string]int64{"zone-a": 70, "zone-b": 30}
	s := begin(t, spread.core(), shares, evenness.Level{Name: rackLabel, Pack: true})
	for _, z := range []string{"zone-a", "zone-b"} {
		for _, rack := range []string{z + "-1", z + "-2"} {
			s.nodes(2, 4, map[string]string{zoneLabel: z, rackLabel: rack})
		}
	}
	o := s.deployed("app", 10, "spread="+zoneLabel+";weight.zone-a=70;weight.zone-b=30,pack="+rackLabel)
	s.exactly(o, 0, map[string]int{"zone-a": 7, "zone-b": 3})
	s.counts(o, 1, 7, 3, 0, 0)
	s.even(o)

	// All nodes of a zone count, and other stories have zones of the usual names.
	large, small := "large-"+s.name, "small-"+s.name
	s.nodes(4, 20, zone(large))
	s.nodes(1, 40, zone(small))
	s.exactly(s.deployed("allocatable", 18, "spread="+zoneLabel+";share=Allocatable", inZones(large, small)), 0, map[string]int{large: 12, small: 6})
}

// inZones keeps a pod to zones.
func inZones(zones ...string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: zones}},
			}}},
		}}
	}
}

// A DaemonSet's pods have their nodes given: one each, whatever its template asks
// for, and the workload beside it is not pushed about by them.
func TestDaemonSet(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.zones(20, 4, 2)
	s.make(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: selects("agent"), Template: s.template("agent", "spread="+zoneLabel)},
	})
	for node, n := range s.settled("agent", 6).OnNodes() {
		if n != 1 {
			s.Errorf("node %s has %d pods of the DaemonSet, want 1", node, n)
		}
	}

	o := s.deployed("app", 12, "spread="+zoneLabel)
	s.counts(o, 0, 6, 6)
	s.even(o)

	// A node that comes later gets its pod, too.
	s.nodes(1, 20, zone("zone-b"))
	s.settled("agent", 7)
}

// A pod that waits for a node is bound to a new one in the moment in which that takes pods. It runs: the node takes none before
// somebody plays it. KWOK forgets the pods of a node that it has not in its hands.
func TestAPodThatWaitsForANewNode(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.pod("app", s.template("app", ""))
	s.refusal("app")
	node := s.newNode(1, zone("zone-a"))
	notReady := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse
	})
	if *nodesFlag == "devcluster" && !notReady {
		s.Errorf("devcluster makes a new node with conditions %v: without Ready=False it takes pods at once", node.Status.Conditions)
	}
	s.settled("app", 1)
}
