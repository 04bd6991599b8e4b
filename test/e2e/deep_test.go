// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// Four levels, and racks of one to three nodes, in rows of one and two racks, in
// zones of one and two rows: each level is even by itself, whatever is below it.
func TestZoneRowRackHost(t *testing.T) {
	s := begin(t, byZone, byRow, byRack)
	s.nodes(3, 50, place("zone-a", "row-1", "rack-1"))
	s.nodes(1, 50, place("zone-a", "row-1", "rack-2"))
	s.nodes(2, 50, place("zone-a", "row-2", "rack-3"))
	s.nodes(1, 50, place("zone-b", "row-3", "rack-4"))
	s.nodes(2, 50, place("zone-b", "row-3", "rack-5"))
	s.nodes(1, 50, place("zone-b", "row-3", "rack-6"))
	s.deploy("app", 36, "spread="+zoneLabel+",spread="+rowLabel+",spread="+rackLabel)
	o := s.settled("app", 36)
	s.counts(o, 0, 18, 18)
	s.exactly(o, 1, map[string]int{"row-1": 9, "row-2": 9, "row-3": 18})
	s.exactly(o, 2, map[string]int{"rack-3": 9, "rack-4": 6, "rack-5": 6, "rack-6": 6})
	s.even(o)

	// An odd number more cannot be even everywhere; it must still be as even as it can.
	s.scale("app", 53)
	s.even(s.settled("app", 53))
}
