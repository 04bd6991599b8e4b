// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "2000"})
	m.Run()
}

// node is one in a zone and a rack, with pods of the revision.
func node(zone, rack, serial int, pods int64) placement.Node {
	n := placement.Node{Name: fmt.Sprintf("n-%d-%d-%d", zone, rack, serial), Tally: placement.Tally{Revision: pods, Workload: pods, All: pods}}
	n.Values = []placement.Value{{Text: fmt.Sprint("zone-", zone)}, {Text: fmt.Sprintf("rack-%d-%d", zone, rack)}}
	return n
}

var byZoneAndRack = []level.Level{
	{Strategy: level.Spread, Property: level.Property{Label: "zone"}, NodesWithoutKey: level.LastResort},
	{Strategy: level.Spread, Property: level.Property{Label: "rack"}, NodesWithoutKey: level.LastResort},
}

func everywhere(string) bool { return true }

// run executes a plan to its end, and returns how many moves it has, and how many of these are between branches of the first level. Each move
// must put a pod right: at the first level at which another number of them is misplaced it is less, and by one if that is the first level. It
// may be less still where nodes are crowded, because one that is full is no place that some are missing from.
func run(t interface{ Fatalf(string, ...any) }, tree *simulation.Tree, crowded bool, fits placement.Fits) (moves, first int) {
	tree.Rank(fits)
	before := tree.Misplaced()
	for {
		move, ok := Next(tree, fits)
		if !ok {
			return moves, first
		}
		moves++
		after := tree.Misplaced()
		at := 0
		for at < len(after)-1 && after[at] == before[at] {
			at++
		}
		if one := before[at] - after[at]; one < 1 || at == 0 && one > 1 && !crowded || move.From == move.To {
			t.Fatalf("%v has %v misplaced, and %v before", move, after, before)
		}
		if at == 0 {
			first++
		}
		before = after
	}
}

func sum(misplaced []int64) (n int64) {
	for _, m := range misplaced {
		n += m
	}
	return n
}

// A zone that is full, and zones of 5, 2 and 2 nodes that are as even as they can be: nothing is moved.
func TestNothingToGain(t *testing.T) {
	full := simulation.New(byZoneAndRack, node(0, 0, 0, 8), node(1, 0, 0, 2))
	if moves, _ := run(t, full, true, func(name string) bool { return name == "n-0-0-0" }); moves != 0 {
		t.Errorf("%d pods leave for a zone that is full", moves)
	}
	var nodes []placement.Node
	for i, pods := range []int64{1, 1, 1, 0, 0} {
		nodes = append(nodes, node(0, 0, i, pods))
	}
	nodes = append(nodes, node(1, 0, 0, 1), node(1, 0, 1, 1), node(2, 0, 0, 1), node(2, 0, 1, 1))
	if moves, _ := run(t, simulation.New(byZoneAndRack, nodes...), false, everywhere); moves != 0 {
		t.Errorf("%d pods are moved though zones are even", moves)
	}
}

// Wherever the pods of random trees stand: each move puts a pod right. With room everywhere a plan has as many moves between branches of the first
// level as pods were misplaced there, and ends with it even; with no level it has as many moves as pods were misplaced. Inside a branch some
// may be left: of two branches that tie without the pod, the tree may choose the other one.
func TestPlansEnd(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		levels := byZoneAndRack[:rapid.IntRange(0, 2).Draw(t, "levels")]
		if len(levels) > 0 && rapid.Bool().Draw(t, "weighted") {
			levels = slices.Clone(levels)
			levels[0].Weights = []level.Weight{{Value: "zone-0", Share: rapid.Int64Range(1, 9).Draw(t, "share")}}
		}
		room := int64(rapid.SampledFrom([]int{1000, 4}).Draw(t, "room"))
		var nodes []placement.Node
		for z := range rapid.IntRange(1, 4).Draw(t, "zones") {
			for r := range rapid.IntRange(1, 3).Draw(t, "racks") {
				for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
					n := node(z, r, i, rapid.Int64Range(0, min(room, 8)).Draw(t, "pods"))
					n.Values = n.Values[:len(levels)]
					nodes = append(nodes, n)
				}
			}
		}
		tree := simulation.New(levels, nodes...)
		fits := func(name string) bool {
			tally, _ := tree.Tally(name)
			return tally.All < room
		}
		tree.Rank(fits)
		before := tree.Misplaced()
		moves, first := run(t, tree, room < 1000, fits)
		moved += moves
		if room < 1000 {
			return
		}
		left := tree.Misplaced()
		if left[0] > 0 || int64(first) != before[0] || int64(moves) > sum(before) {
			t.Fatalf("after %d moves, %d of them between branches, %v are misplaced, and %v were", moves, first, left, before)
		}
		if len(levels) == 0 && int64(moves) != sum(before) {
			t.Fatalf("%d moves for %v misplaced pods", moves, before)
		}
	})
	if moved == 0 {
		t.Error("nothing was ever moved")
	}
}

// Where a pod must stay, one of another node of its zone goes. One of a zone that has too few does not, and then the tree is as before.
func TestInstead(t *testing.T) {
	for name, tc := range map[string]struct {
		others []string
		from   string // "" for none
	}{
		"nobody":                     {nil, ""},
		"one of the zone":            {[]string{"n-0-1-0"}, "n-0-1-0"},
		"one of another zone":        {[]string{"n-2-0-0"}, ""},
		"one of another zone before": {[]string{"n-2-0-0", "n-0-1-0"}, "n-0-1-0"},
	} {
		tree := simulation.New(byZoneAndRack, node(0, 0, 0, 3), node(0, 1, 0, 2), node(1, 0, 0, 0), node(2, 0, 0, 2))
		tree.Rank(everywhere)
		before := tree.Misplaced()
		drawn := tree.String()
		first, ok := Next(tree, everywhere)
		if !ok || first.From != "n-0-0-0" {
			t.Fatalf("%s: first is %v", name, first)
		}
		is, ok := Instead(tree, first, before, tc.others, everywhere)
		tree.Rank(everywhere) // they are asked about the nodes again, whose pods have come and gone
		if is.From != tc.from || ok != (tc.from != "") || ok && is.To != first.To {
			t.Errorf("%s: it is %v: %t", name, is, ok)
		}
		switch left := tree.Misplaced(); {
		case ok && slices.Compare(left, before) >= 0:
			t.Errorf("%s: %v are misplaced, and %v before", name, left, before)
		case !ok && tree.String() != drawn:
			t.Errorf("%s: the tree is\n%s, and was\n%s", name, tree, drawn)
		}
	}
}
