// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"iter"
	"slices"
	"testing"
)

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
