// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// 70 to 30 of twenty pods is fourteen and six, and of ten more again seven and three.
func TestWeightsOf70To30(t *testing.T) {
	level := byZone
	level.Weights = map[string]int64{"zone-a": 70, "zone-b": 30}
	s := begin(t, level)
	s.nodes(2, 50, zone("zone-a"))
	s.nodes(3, 50, zone("zone-b"))
	s.deploy("app", 20, "spread="+zoneLabel+";weight.zone-a=70;weight.zone-b=30")
	o := s.settled("app", 20)
	s.exactly(o, 0, map[string]int{"zone-a": 14, "zone-b": 6})
	s.even(o)

	s.scale("app", 30)
	o = s.settled("app", 30)
	s.exactly(o, 0, map[string]int{"zone-a": 21, "zone-b": 9})
	s.even(o)
}

// The weight of all others is shared between them, evenly.
func TestWeightOfAllOthers(t *testing.T) {
	level := byZone
	level.Weights = map[string]int64{"zone-a": 60, "zone-b": 20, evenness.Others: 20}
	s := begin(t, level)
	for _, name := range []string{"zone-a", "zone-b", "zone-c", "zone-d"} {
		s.nodes(2, 50, zone(name))
	}
	s.deploy("app", 20, "spread="+zoneLabel+";weight.zone-a=60;weight.zone-b=20;weight.*=20")
	o := s.settled("app", 20)
	s.exactly(o, 0, map[string]int{"zone-a": 12, "zone-b": 4, "zone-c": 2, "zone-d": 2})
	s.even(o)
}

// Zones get pods in proportion to the CPU that their nodes have, whatever the nodes are.
func TestSharesOfWhatNodesHave(t *testing.T) {
	s := begin(t, byZone)
	// All nodes of a zone count, and other stories have zones of the usual names.
	large, small := "large-"+s.name, "small-"+s.name
	s.nodes(4, 20, zone(large))
	s.nodes(1, 40, zone(small))
	s.deploy("app", 18, "spread="+zoneLabel+";share=Allocatable")
	s.exactly(s.settled("app", 18), 0, map[string]int{large: 12, small: 6})
}
