// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

func TestMisplaced(t *testing.T) {
	node := func(name, zone string, count, room int) evenness.Node {
		return evenness.Node{Name: name, Values: []string{zone}, Count: count, Room: room}
	}
	levels := []evenness.Level{{Name: "zone"}}
	for _, tc := range []struct {
		name       string
		nodes      []evenness.Node
		zone, node int
	}{
		{"nothing", nil, 0, 0},
		{"even", []evenness.Node{node("1", "a", 2, 9), node("2", "b", 1, 9)}, 0, 0},
		{"a zone too full", []evenness.Node{node("1", "a", 5, 9), node("2", "b", 1, 9)}, 2, 0},
		{"a zone full because the other has no room", []evenness.Node{node("1", "a", 5, 9), node("2", "b", 1, 1)}, 0, 0},
		{"nodes of a zone", []evenness.Node{node("1", "a", 3, 9), node("2", "a", 0, 9), node("3", "b", 3, 9)}, 0, 1},
		{"the rest may lie anywhere", []evenness.Node{node("1", "a", 1, 9), node("2", "a", 2, 9), node("3", "a", 1, 9)}, 0, 0},
		{"two rests on one node", []evenness.Node{node("1", "a", 3, 9), node("2", "a", 1, 9), node("3", "a", 1, 9)}, 0, 1},
	} {
		got := CountMisplaced(levels, tc.nodes)
		if got[0] != (Misplaced{"zone", tc.zone}) || got[1] != (Misplaced{NodeLevel, tc.node}) {
			t.Errorf("%s: got %v, want zone %d and node %d", tc.name, got, tc.zone, tc.node)
		}
	}
}

// Nothing is misplaced exactly where the demo and the stories would find nothing to say.
func TestMisplacedAgreesWithEvenness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := []evenness.Level{{Name: "zone"}, {Name: "rack"}}
		var nodes []evenness.Node
		for i := range rapid.IntRange(0, 9).Draw(t, "nodes") {
			fixed := rapid.IntRange(0, 2).Draw(t, "fixed")
			count := fixed + rapid.IntRange(0, 3).Draw(t, "count")
			nodes = append(nodes, evenness.Node{
				Name: string(rune('a' + i)), Values: []string{rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "zone"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "rack")},
				Fixed: fixed, Count: count, Room: count + rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "room"),
			})
		}
		total := 0
		for _, m := range CountMisplaced(levels, nodes) {
			if m.Pods < 0 {
				t.Fatalf("%d pods are misplaced at level %s", m.Pods, m.Level)
			}
			total += m.Pods
		}
		if findings := evenness.Check(levels, nodes); (total == 0) != (len(findings) == 0) {
			t.Fatalf("%d pods are misplaced, while the findings are %v", total, findings)
		}
	})
}
