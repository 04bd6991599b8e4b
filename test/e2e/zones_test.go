// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Zones of 10, 5 and 2 nodes get a third of the pods each: a spread counts
// zones, not nodes.
func TestThreeUnequalZones(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(10, 50, zone("zone-a"))
	s.nodes(5, 50, zone("zone-b"))
	s.nodes(2, 50, zone("zone-c"))
	s.deploy("app", 61, "spread="+zoneLabel)
	o := s.settled("app", 61)
	s.counts(o, 0, 21, 20, 20)
	s.even(o)
}

// Two levels from the pod's own ScheduleAnyway constraints, without an
// annotation, on 2 + 1 nodes: the lonely node takes half of everything.
func TestZoneAndHostWithTwoPlusOneNodes(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 50, zone("zone-a"))
	s.nodes(1, 50, zone("zone-b"))
	s.deploy("app", 10, "", func(spec *corev1.PodSpec) {
		for _, key := range []string{zoneLabel, corev1.LabelHostname} {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}},
			})
		}
	})
	o := s.settled("app", 10)
	s.exactly(o, 0, map[string]int{"zone-a": 5, "zone-b": 5})
	s.even(o)
}

// Zones with room for 3, 9 and 40: the small ones fill up, the rest overflows
// to the large one, and no pod stays behind.
func TestRoomOf3And9And40(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(1, 3, zone("zone-a"))
	s.nodes(3, 3, zone("zone-b"))
	s.nodes(4, 10, zone("zone-c"))
	s.deploy("app", 31, "spread="+zoneLabel)
	o := s.settled("app", 31)
	s.exactly(o, 0, map[string]int{"zone-a": 3, "zone-b": 9, "zone-c": 19})
	s.even(o)
}

// A zone that goes leaves its pods to the others, and when it comes back it gets
// new pods until it is level with them.
func TestZoneGoesAndComesBack(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 50, zone("zone-a"))
	s.nodes(2, 50, zone("zone-b"))
	lost := s.nodes(2, 50, zone("zone-c"))
	s.deploy("app", 12, "spread="+zoneLabel)
	o := s.settled("app", 12)
	s.counts(o, 0, 4, 4, 4)
	s.even(o)

	s.lose(lost...)
	o = s.settled("app", 12)
	s.counts(o, 0, 6, 6)
	s.even(o)

	s.nodes(2, 50, zone("zone-c"))
	before := o.OnNodes()
	s.scale("app", 16)
	o = s.settled("app", 16)
	s.exactly(o, 0, map[string]int{"zone-a": 6, "zone-b": 6, "zone-c": 4})
	o.Fix(before)
	s.even(o)

	s.scale("app", 19)
	o = s.settled("app", 19)
	s.counts(o, 0, 7, 6, 6)
}

// A cordoned zone keeps its pods, and they count; it only gets no more.
func TestCordonedZone(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 50, zone("zone-a"))
	s.nodes(2, 50, zone("zone-b"))
	cordoned := s.nodes(2, 50, zone("zone-c"))
	s.deploy("app", 6, "spread="+zoneLabel)
	s.counts(s.settled("app", 6), 0, 2, 2, 2)

	s.cordon(true, cordoned...)
	s.scale("app", 12)
	o := s.settled("app", 12)
	s.exactly(o, 0, map[string]int{"zone-a": 5, "zone-b": 5, "zone-c": 2})
	s.even(o)

	s.cordon(false, cordoned...)
	s.scale("app", 15)
	o = s.settled("app", 15)
	s.counts(o, 0, 5, 5, 5)
	s.even(o)
}
