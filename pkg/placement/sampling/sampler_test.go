// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "200"})
	m.Run()
}

// zones makes groups of nodes, as many of each.
func zones(n, nodes int) []*Group {
	groups := make([]*Group, n)
	for zone := range groups {
		groups[zone] = &Group{}
		for i := range nodes {
			groups[zone].Nodes = append(groups[zone].Nodes, fmt.Sprintf("zone-%d-node-%d", zone, i))
		}
	}
	return groups
}

// A sample is of nodes that fit, each of them once, of as many groups as there are to be, and of no group too many.
func TestSamplesAreOfNodesThatFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := zones(rapid.IntRange(0, 8).Draw(t, "groups"), rapid.IntRange(0, 40).Draw(t, "nodes"))
		s := &Sampler{
			Groups: BasisPoints(rapid.IntRange(1, int(All)).Draw(t, "Cp")), Nodes: BasisPoints(rapid.IntRange(1, int(All)).Draw(t, "Np")),
			Strategy: rapid.SampledFrom([]Strategy{Random, RoundRobin}).Draw(t, "strategy"),
			Intn:     func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "random") },
		}
		full := rapid.SliceOfDistinct(rapid.IntRange(0, 39), rapid.ID[int]).Draw(t, "full nodes of each zone")
		isFull := make(map[string]bool)
		for _, g := range groups {
			for _, i := range full {
				if i < len(g.Nodes) {
					isFull[g.Nodes[i]] = true
				}
			}
		}
		for range 3 {
			sample := s.Sample(groups, func(node string) bool { return !isFull[node] }, forever)
			of := make(map[int]int)
			for i, node := range sample {
				if isFull[node] || slices.Contains(sample[:i], node) {
					t.Fatalf("node %s of %v does not fit, or is there twice", node, sample)
				}
				of[slices.IndexFunc(groups, func(g *Group) bool { return slices.Contains(g.Nodes, node) })]++
			}
			if len(groups) > 0 && len(of) > s.Groups.OfGroups(len(groups)) {
				t.Fatalf("%d groups are in the sample, want %d at most", len(of), s.Groups.OfGroups(len(groups)))
			}
			for zone, n := range of {
				if want := s.Nodes.OfNodes(len(groups[zone].Nodes)); n > want || len(isFull) == 0 && n < want {
					t.Fatalf("%d nodes of zone %d are in the sample, want %d", n, zone, want)
				}
			}
		}
	})
}

// placed is how many pods are on each node of each zone.
type placed [][]int

// place has the tree decide about each pod by a sample alone.
func place(groups []*Group, s *Sampler, pods int) placed {
	nodes := tree.NewNodes(0)
	var zoneOf []string
	for zone, g := range groups {
		for _, name := range g.Nodes {
			nodes.Set(name, tree.Facts{})
			zoneOf = append(zoneOf, fmt.Sprint(zone))
		}
	}
	levels := []level.Level{{Strategy: level.Spread, Property: level.Property{Label: "zone"}, NodesWithoutKey: level.LastResort}}
	topology := tree.NewTopology(nodes, levels, func(node int32, _ int) placement.Value { return placement.Value{Text: zoneOf[node]} })
	tally := tree.NewTally(topology)
	for range pods {
		drawn := s.Sample(groups, anything, forever)
		feasible := tree.NewFeasibility(nodes)
		feasible.Refresh()
		for _, node := range nodes.All() {
			if !slices.Contains(drawn, nodes.Name(node)) {
				feasible.Refuse(node, 0)
			}
		}
		node, _ := tree.View{Topology: topology, Feasibility: feasible, Tally: tally}.Next(func(int32) (bool, int) { return true, 0 })
		count, _ := tally.Pods(node)
		tally.SetPods(node, count+1, count+1)
	}
	result := make(placed, len(groups))
	for zone, g := range groups {
		for _, name := range g.Nodes {
			node, _ := nodes.Find(name)
			count, _ := tally.Pods(node)
			result[zone] = append(result[zone], int(count))
		}
	}
	return result
}

// zoneSums are the pods of each zone.
func (p placed) zoneSums() []int {
	sums := make([]int, len(p))
	for zone := range p {
		for _, n := range p[zone] {
			sums[zone] += n
		}
	}
	return sums
}

func random(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 1)).IntN }

// What a sample of all zones gives up is inside the zones: these are as even as by the tree. Of two or more nodes
// of each, at random, no node has more than a few pods above the mean, however many pods there are.
func TestSamplesLeaveNodesNearlyEven(t *testing.T) {
	const above = 5
	rapid.Check(t, func(t *rapid.T) {
		groups := zones(rapid.IntRange(1, 4).Draw(t, "zones"), rapid.IntRange(4, 30).Draw(t, "nodes"))
		n := len(groups[0].Nodes)
		s := &Sampler{Groups: All, Nodes: BasisPoints(rapid.IntRange((2*int(All)+n-1)/n, int(All)).Draw(t, "Np")), Intn: random(rapid.Uint64().Draw(t, "seed"))}
		pods := rapid.IntRange(1, 8).Draw(t, "pods a node") * n * len(groups)
		p := place(groups, s, pods)
		sums := p.zoneSums()
		if slices.Max(sums)-slices.Min(sums) > 1 {
			t.Fatalf("the zones have %v", sums)
		}
		for zone := range p {
			if most := sums[zone]/n + above; slices.Max(p[zone]) > most {
				t.Fatalf("the nodes of zone %d have %v, want %d at most", zone, p[zone], most)
			}
		}
	})
}

// With some of the zones in a sample, zones are nearly even too.
func TestSamplesOfSomeZonesLeaveZonesNearlyEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := zones(rapid.IntRange(4, 12).Draw(t, "zones"), 4)
		n := len(groups)
		s := &Sampler{Groups: BasisPoints(rapid.IntRange((2*int(All)+n-1)/n, int(All)).Draw(t, "Cp")), Nodes: All, Intn: random(rapid.Uint64().Draw(t, "seed"))}
		pods := rapid.IntRange(1, 30).Draw(t, "pods a zone") * n
		if sums := place(groups, s, pods).zoneSums(); slices.Max(sums) > pods/n+5 {
			t.Fatalf("the zones have %v of %d pods", sums, pods)
		}
	})
}

// In turn, a group that is chosen in a rhythm shows the same nodes again and again: here every third pod goes to
// a zone, which has gone through its nine nodes by then.
func TestTurnsCanShowTheSameNodes(t *testing.T) {
	s := &Sampler{Groups: All, Nodes: 3334, Strategy: RoundRobin}
	p := place(zones(3, 9), s, 90)
	if slices.Max(p[0])-slices.Min(p[0]) < 5 {
		t.Errorf("the nodes of a zone have %v: say in the pages that turns do no harm", p[0])
	}
	s = &Sampler{Groups: All, Nodes: 3334, Intn: random(1)}
	if p := place(zones(3, 9), s, 90); slices.Max(p[0])-slices.Min(p[0]) > 3 {
		t.Errorf("at random the nodes of a zone have %v", p[0])
	}
}

// Vector VV1: how many groups are in a sample.
func TestVector_VV1(t *testing.T) {
	for _, tc := range []struct{ groups, percent, want int }{{10, 33, 4}, {10, 100, 10}, {3, 33, 1}, {20, 10, 2}, {1, 33, 1}, {4, 1, 1}} {
		if got := BasisPoints(100 * tc.percent).OfGroups(tc.groups); got != tc.want {
			t.Errorf("%d %% of %d groups are %d, want %d", tc.percent, tc.groups, got, tc.want)
		}
	}
}

// Vector VV2: how many nodes of a group are wanted, and which shares there are none of.
func TestVector_VV2(t *testing.T) {
	for _, tc := range []struct {
		nodes int
		share BasisPoints
		want  int
	}{{100, 200, 2}, {30, 200, 1}, {149, 200, 2}, {1000, 400, 40}, {2000, 1600, 320}} {
		if got := tc.share.OfNodes(tc.nodes); got != tc.want {
			t.Errorf("%d basis points of %d nodes are %d, want %d", tc.share, tc.nodes, got, tc.want)
		}
	}
	for share, want := range map[BasisPoints]bool{-1: false, 0: false, 1: true, All: true, All + 1: false} {
		if share.Valid() != want {
			t.Errorf("%d basis points are valid: %t, want %t", share, !want, want)
		}
	}
}

// Vector VV3: nodes in turn.
func TestVector_VV3(t *testing.T) {
	for _, tc := range []struct {
		size int
		want [][]int
	}{
		{2, [][]int{{0, 1}, {2, 3}, {4, 0}, {1, 2}, {3, 4}}},
		{3, [][]int{{0, 1, 2}, {3, 4, 0}, {1, 2, 3}, {4, 0, 1}}},
		{7, [][]int{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}},
	} {
		cursor := 0
		for _, want := range tc.want {
			if got := slices.Collect(inTurn(&cursor, 5, tc.size)); !slices.Equal(got, want) {
				t.Errorf("draws of %d: got %v, want %v", tc.size, got, want)
			}
		}
	}
	// Whoever draws moves the one cursor on.
	g := &Group{Nodes: []string{"a", "b", "c", "d", "e"}}
	s := &Sampler{Groups: All, Nodes: 4000, Strategy: RoundRobin}
	for _, want := range [][]string{{"a", "b"}, {"c", "d"}, {"e", "a"}} {
		if got := s.Sample([]*Group{g}, anything, forever); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	g.Nodes = g.Nodes[:1] // the cursor is beyond them
	if got := s.Sample([]*Group{g}, anything, forever); !slices.Equal(got, []string{"a"}) {
		t.Errorf("of one node that is left: %v", got)
	}
}

func anything(string) bool { return true }
func forever() bool        { return true }

// Vector VV4: draws go on until enough fit, and not for ever.
func TestVector_VV4(t *testing.T) {
	cursor := 0
	var sizes []int
	draw := func(size int) iter.Seq[int] {
		sizes = append(sizes, size)
		return inTurn(&cursor, 10, size)
	}
	found := search(10, 2, draw, func(at int) bool { return at == 7 }, forever)
	if !slices.Equal(found, []int{7}) || !slices.Equal(sizes, []int{2, 2, 2, 2, 1}) {
		t.Errorf("found %v by draws of %v, want 7 by 2, 2, 2, 2 and 1", found, sizes)
	}
	if found := search(10, 2, draw, func(int) bool { return false }, forever); len(found) > 0 {
		t.Errorf("none fits, and %v are found", found)
	}
	// Beyond the vector: time is up, in the middle of a draw of all.
	looks := 0
	cursor = 0
	found = search(10, 10, draw, func(int) bool { return true }, func() bool { looks++; return looks <= 3 })
	if !slices.Equal(found, []int{0, 1, 2}) || looks != 4 || cursor != 3 {
		t.Errorf("found %v in %d looks at the time, and the next one is %d; want 0 to 2, and 3 to be next", found, looks, cursor)
	}
}

// Where time is up, what was not asked about has the next turn: the same nodes of the same group would be shown to all pods otherwise.
func TestTurnsGoOnAfterTimeIsUp(t *testing.T) {
	groups := zones(3, 4)
	s := &Sampler{Groups: All, Nodes: All, Strategy: RoundRobin}
	shown := make(map[string]int)
	for range 24 {
		left := 2 // looks at the time: one for a group, and one for each node
		for _, node := range s.Sample(groups, anything, func() bool { left--; return left >= 0 }) {
			shown[node]++
		}
	}
	for _, g := range groups {
		for _, node := range g.Nodes {
			if shown[node] != 2 {
				t.Errorf("%s was shown %d times of 24, want 2: %v", node, shown[node], shown)
			}
		}
	}
}
