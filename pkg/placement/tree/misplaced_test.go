// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// stand is a node with pods of the revision.
func stand(name string, pods int64, values ...string) placement.Node {
	n := placement.Node{Name: name, Tally: placement.Tally{Revision: pods, Workload: pods, All: pods}}
	for _, v := range values {
		n.Values = append(n.Values, placement.Value{Text: v})
	}
	return n
}

func TestMisplaced(t *testing.T) {
	zones, pack := "spread=zone", "pack=zone"
	broken, gone := stand("b-1", 0, "b"), stand("b-1", 4, "b")
	broken.Record = placement.Record{Failures: 5}
	gone.Unready = true
	for name, c := range map[string]struct {
		levels  string
		nodes   []placement.Node
		refused []string
		want    []int64
	}{
		"nothing":               {levels: zones, want: []int64{0, 0}},
		"even":                  {levels: zones, nodes: []placement.Node{stand("a-1", 2, "a"), stand("b-1", 1, "b")}, want: []int64{0, 0}},
		"a zone came back":      {levels: zones, nodes: []placement.Node{stand("a-1", 3, "a"), stand("b-1", 3, "b"), stand("c-1", 0, "c")}, want: []int64{2, 0}},
		"nodes of a zone":       {levels: zones, nodes: []placement.Node{stand("a-1", 4, "a"), stand("a-2", 0, "a"), stand("b-1", 4, "b")}, want: []int64{0, 2}},
		"no level":              {nodes: []placement.Node{stand("a-1", 5), stand("b-1", 0)}, want: []int64{2}},
		"no room":               {levels: zones, nodes: []placement.Node{stand("a-1", 5, "a"), stand("b-1", 0, "b")}, refused: []string{"b-1"}, want: []int64{0, 0}},
		"full where it is high": {levels: zones, nodes: []placement.Node{stand("a-1", 5, "a"), stand("b-1", 0, "b")}, refused: []string{"a-1"}, want: []int64{2, 0}},
		"faulty":                {levels: zones, nodes: []placement.Node{stand("a-1", 5, "a"), broken}, want: []int64{0, 0}},
		"its pods do not run":   {levels: zones, nodes: []placement.Node{stand("a-1", 1, "a"), gone}, want: []int64{0, 0}},
		"weights":               {levels: "spread=zone;weight.a=2;weight.b=1", nodes: []placement.Node{stand("a-1", 4, "a"), stand("b-1", 2, "b")}, want: []int64{0, 0}},
		"weights not kept":      {levels: "spread=zone;weight.a=2;weight.b=1", nodes: []placement.Node{stand("a-1", 3, "a"), stand("b-1", 3, "b")}, want: []int64{1, 0}},
		"others are one level":  {levels: "spread=zone;weight.a=1;weight.*=1", nodes: []placement.Node{stand("a-1", 4, "a"), stand("b-1", 4, "b"), stand("c-1", 0, "c")}, want: []int64{2, 0}},
		"packed":                {levels: pack, nodes: []placement.Node{stand("a-1", 4, "a"), stand("b-1", 0, "b")}, want: []int64{0, 0}},
		"not packed":            {levels: pack, nodes: []placement.Node{stand("a-1", 4, "a"), stand("b-1", 1, "b"), stand("c-1", 2, "c")}, want: []int64{3, 0}},
		"packed as far as fits": {levels: pack, nodes: []placement.Node{stand("a-1", 4, "a"), stand("b-1", 1, "b")}, refused: []string{"a-1"}, want: []int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var levels []level.Level
			if c.levels != "" {
				var err error
				if levels, err = level.Parse(c.levels); err != nil {
					t.Fatal(err)
				}
			}
			tree := New(levels)
			for _, n := range c.nodes {
				tree.Set(n)
			}
			tree.Rank(func(name string) bool { return !slices.Contains(c.refused, name) })
			if got := tree.Misplaced(); !slices.Equal(got, c.want) {
				t.Errorf("misplaced by level: %d, want %d", got, c.want)
			}
			if err := tree.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantMisplaced compares the counts by level.
func wantMisplaced(t *testing.T, tree *Tree, when string, want ...int64) {
	t.Helper()
	if got := tree.Misplaced(); !slices.Equal(got, want) {
		t.Errorf("%s: misplaced by level: %d, want %d\n%s", when, got, want, tree)
	}
}

// A node that is refused to all pods is no place that some are missing from, also when
// nobody remembers the answers any more.
func TestMisplacedBesideRefusedNodes(t *testing.T) {
	levels, err := level.Parse("spread=zone")
	if err != nil {
		t.Fatal(err)
	}
	tree := New(levels)
	for _, zone := range []string{"a", "b", "c"} {
		tree.Set(stand(zone+"-control", 0, zone))
		tree.Set(stand(zone+"-worker", 0, zone))
	}
	fit := func(name string) bool { return name[2:] == "worker" }
	for i := range 30 {
		name, ok := tree.Next(fit)
		if !ok {
			t.Fatal("no node fits")
		}
		tree.Add(name, placement.Tally{Revision: 1, Workload: 1, All: 1})
		wantMisplaced(t, tree, fmt.Sprintf("after %d pods", i+1), 0, 0)
		tree.RecheckAll()
		wantMisplaced(t, tree, fmt.Sprintf("after %d pods, all forgotten", i+1), 0, 0)
	}
}

func TestMisplacedByWhatWasSaidLast(t *testing.T) {
	tree := New(nil)
	tree.Set(stand("a", 4))
	tree.Set(stand("b", 0))
	wantMisplaced(t, tree, "nobody has asked about an empty node", 0)
	allow := func(b bool) { tree.Rank(func(name string) bool { return name == "a" || b }) }
	allow(true)
	tree.RecheckAll()
	wantMisplaced(t, tree, "it fits", 2)
	allow(false)
	tree.Recheck("b")
	wantMisplaced(t, tree, "it does not any more", 0)
	tree.Set(stand("b", 0))
	wantMisplaced(t, tree, "it has changed, and is empty", 0)
	tree.Set(stand("b", 1))
	wantMisplaced(t, tree, "it has a pod", 1)
	allow(false)
	tree.RecheckAll()
	wantMisplaced(t, tree, "it takes no more", 0)
	allow(true)
	tree.RecheckAll()
	wantMisplaced(t, tree, "it takes more", 1)
}

// As many pods move as in the best of all divisions that are even, and there is one.
func TestPropertyUnevenIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piles := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pile {
			return pile{rapid.Int64Range(0, 6).Draw(t, "pods"), rapid.Int64Range(1, 4).Draw(t, "share"), rapid.Bool().Draw(t, "takes")}
		}), 0, 4).Draw(t, "piles")
		want := leastMoves(piles)
		if got := uneven(slices.Clone(piles)); got != want {
			t.Fatalf("%d pods move, and %d are enough", got, want)
		}
	})
}

// leastMoves tries every division of the pods.
func leastMoves(piles []pile) int64 {
	total := int64(0)
	for _, p := range piles {
		total += p.pods
	}
	least := int64(math.MaxInt64)
	divide(slices.Clone(piles), piles, 0, total, func(divided []pile) {
		moves := int64(0)
		for i, p := range divided {
			moves += max(0, piles[i].pods-p.pods)
		}
		least = min(least, moves)
	})
	return least
}

// divide calls found with every division in which no pod is better off elsewhere. A
// pile that takes nothing has room for what it has.
func divide(now, piles []pile, at int, left int64, found func([]pile)) {
	if at < len(now) {
		most := left
		if !piles[at].takes {
			most = min(left, piles[at].pods)
		}
		for now[at].pods = 0; now[at].pods <= most; now[at].pods++ {
			divide(now, piles, at+1, left-now[at].pods, found)
		}
		return
	}
	if left > 0 {
		return
	}
	for i := range now {
		for j := range now {
			if room := piles[j].takes || now[j].pods < piles[j].pods; i != j && room && now[i].higher(&now[j]) {
				return
			}
		}
	}
	found(now)
}

// What a scrape costs for one tree that has changed, even or not.
func BenchmarkMisplaced(b *testing.B) {
	for name, pods := range map[string]func(i int) int64{
		"even":   func(int) int64 { return 2 },
		"uneven": func(i int) int64 { return int64(i % 7) },
	} {
		b.Run(fmt.Sprintf("nodes=5000/%s", name), func(b *testing.B) {
			levels, err := level.Parse("spread=zone")
			if err != nil {
				b.Fatal(err)
			}
			tree := New(levels)
			for i := range 5000 {
				tree.Set(stand(fmt.Sprintf("node-%04d", i), pods(i), fmt.Sprint(i%5)))
			}
			b.ReportAllocs()
			for b.Loop() {
				tree.Misplaced()
			}
		})
	}
}
