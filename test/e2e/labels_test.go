// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// Nodes without the label are one more branch with an equal share.
func TestNodesWithoutTheLabel(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(3, 50, zone("zone-a"))
	s.nodes(1, 50, zone("zone-b"))
	s.nodes(2, 50, nil)
	s.deploy("app", 12, "spread="+zoneLabel)
	o := s.settled("app", 12)
	s.exactly(o, 0, map[string]int{"zone-a": 4, "zone-b": 4, "": 4})
	s.even(o)
}

// nodesWithoutKey=Exclude keeps the workload off them.
func TestNodesWithoutTheLabelLeftOut(t *testing.T) {
	level := byZone
	level.Exclude = true
	s := begin(t, level)
	s.nodes(3, 50, zone("zone-a"))
	s.nodes(1, 50, zone("zone-b"))
	s.nodes(2, 50, nil)
	s.deploy("app", 12, "spread="+zoneLabel+";nodesWithoutKey=Exclude")
	o := s.settled("app", 12)
	s.exactly(o, 0, map[string]int{"zone-a": 6, "zone-b": 6, "": 0})
	s.even(o)
}
