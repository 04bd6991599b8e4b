// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// Autoscalers and operators taint nodes with PreferNoSchedule that are about to go. Such nodes get no
// pod while others of their zone have room, also where hosts are a level, and the zones stay even. Then they
// get the rest.
func TestSoftTaints(t *testing.T) {
	s := begin(t, byZone)
	var soft []string
	for _, name := range []string{"zone-a", "zone-b"} {
		s.nodes(2, 10, zone(name))
		soft = append(soft, s.nodes(2, 10, zone(name))...)
	}
	s.softTaint(soft)
	onSoft := func(app string, pods int) (n int) {
		o := s.settled(app, pods)
		s.counts(o, 0, pods/2, pods/2)
		for _, node := range soft {
			n += o.OnNodes()[node]
		}
		return n
	}
	s.deploy("zones", 12, "spread="+zoneLabel)
	if n := onSoft("zones", 12); n > 0 {
		t.Errorf("%d of 12 pods are on soft-tainted nodes, want none", n)
	}
	s.deploy("hosts", 12, "spread="+zoneLabel+",spread=kubernetes.io/hostname")
	if n := onSoft("hosts", 12); n > 0 {
		t.Errorf("%d of 12 pods over hosts are on soft-tainted nodes, want none", n)
	}
	s.scale("zones", 40)
	if n := onSoft("zones", 40); n != 12 {
		t.Errorf("%d of 40 pods are on soft-tainted nodes, want the 12 that the others have no room for", n)
	}
}

// softTaint puts a taint on nodes that keeps pods away where there are others.
func (s *story) softTaint(nodes []string) {
	s.Helper()
	for _, node := range nodes {
		s.taint(node, `[{"key":"DeletionCandidateOfClusterAutoscaler","effect":"PreferNoSchedule"}]`)
	}
}
