// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
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
			tr := simulation.New(parseLevels(t, c.levels), c.nodes...)
			tr.Rank(func(name string) bool { return !slices.Contains(c.refused, name) })
			if got := tr.Misplaced(); !slices.Equal(got, c.want) {
				t.Errorf("misplaced by level: %d, want %d", got, c.want)
			}
			if err := tr.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantMisplaced compares the counts by level.
func wantMisplaced(t *testing.T, tr *simulation.Tree, when string, want ...int64) {
	t.Helper()
	if got := tr.Misplaced(); !slices.Equal(got, want) {
		t.Errorf("%s: misplaced by level: %d, want %d\n%s", when, got, want, tr)
	}
}

// A node that is refused to all pods is no place that some are missing from, also when nobody remembers the answers any more.
func TestMisplacedBesideRefusedNodes(t *testing.T) {
	tr := simulation.New(parseLevels(t, "spread=zone"))
	for _, zone := range []string{"a", "b", "c"} {
		tr.Set(stand(zone+"-control", 0, zone))
		tr.Set(stand(zone+"-worker", 0, zone))
	}
	fit := func(name string) bool { return name[2:] == "worker" }
	for i := range 30 {
		name, ok := tr.Next(fit)
		if !ok {
			t.Fatal("no node fits")
		}
		tr.Add(name, placement.Tally{Revision: 1, Workload: 1, All: 1})
		wantMisplaced(t, tr, fmt.Sprintf("after %d pods", i+1), 0, 0)
		tr.RecheckAll()
		wantMisplaced(t, tr, fmt.Sprintf("after %d pods, all forgotten", i+1), 0, 0)
	}
}

func TestMisplacedByWhatWasSaidLast(t *testing.T) {
	tr := simulation.New(nil)
	tr.Set(stand("a", 4))
	tr.Set(stand("b", 0))
	wantMisplaced(t, tr, "nobody has asked about an empty node", 0)
	allow := func(b bool) { tr.Rank(func(name string) bool { return name == "a" || b }) }
	allow(true)
	tr.RecheckAll()
	wantMisplaced(t, tr, "it fits", 2)
	allow(false)
	tr.Recheck("b")
	wantMisplaced(t, tr, "it does not any more", 0)
	tr.Set(stand("b", 0))
	wantMisplaced(t, tr, "it has changed, and is empty", 0)
	tr.Set(stand("b", 1))
	wantMisplaced(t, tr, "it has a pod", 1)
	allow(false)
	tr.RecheckAll()
	wantMisplaced(t, tr, "it takes no more", 0)
	allow(true)
	tr.RecheckAll()
	wantMisplaced(t, tr, "it takes more", 1)
}

// mortal is a node that ends in an hour, 0 for never, with a value for each level.
func mortal(name string, ends int32, values ...string) placement.Node {
	n := placement.Node{Name: name, Ends: ends}
	for _, v := range values {
		n.Values = append(n.Values, placement.Value{Text: v})
	}
	return n
}

// loaded has so many hundredths of a node's CPU requested.
func loaded(n placement.Node, percent int64) placement.Node {
	n.Usage.CPU = placement.Amount{Requested: percent, Allocatable: 100}
	return n
}

func holding(n placement.Node, pods int64) placement.Node {
	n.Tally = placement.Tally{Revision: pods, Workload: pods, All: pods}
	return n
}

// Of nodes that tie the one that lives longest gets the pod: after the counts of pods, and before the load.
func TestTheNodeThatLivesLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		levels string
		nodes  []placement.Node
		want   string // classes of equals, the best first
	}{
		"before the load":  {"", []placement.Node{loaded(mortal("a", 7), 0), loaded(mortal("b", 9), 90)}, "b | a"},
		"load in one hour": {"", []placement.Node{loaded(mortal("a", 7), 50), loaded(mortal("b", 7), 40), mortal("c", 6)}, "b | a | c"},
		"after the counts": {"", []placement.Node{holding(mortal("a", 9), 1), mortal("b", 7)}, "b | a"},
		"without an end":   {"", []placement.Node{mortal("a", 9), loaded(mortal("b", 0), 90), mortal("c", 7)}, "b | a | c"},
		"over hosts":       {"spread=kubernetes.io/hostname", []placement.Node{mortal("a", 7, "a"), mortal("b", 9, "b")}, "b | a"},
		"over hosts that pack": {"pack=kubernetes.io/hostname",
			[]placement.Node{mortal("a", 7, "a"), mortal("b", 9, "b"), holding(mortal("c", 1, "c"), 1)}, "c | b | a"},
		"no zone": {"spread=zone", []placement.Node{loaded(mortal("a", 7, "x"), 0), loaded(mortal("b", 9, "y"), 90), loaded(mortal("c", 8, "y"), 0)}, "a | b | c"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := simulation.New(parseLevels(t, tc.levels), tc.nodes...)
			var got []string
			class := 0
			for _, r := range tr.Rank(func(string) bool { return true }) {
				if r.Class > class {
					got, class = append(got, "|"), r.Class
				}
				got = append(got, r.Name)
			}
			if is := strings.Join(got, " "); is != tc.want {
				t.Errorf("they are ranked %s, want %s", is, tc.want)
			}
			if next, _ := tr.Next(func(string) bool { return true }); next != strings.Fields(tc.want)[0] {
				t.Errorf("the next is %s, of %s", next, tc.want)
			}
			if err := tr.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The longest-lived nodes fill up first, whatever their number, and then the next.
func TestNodesOfManyEndsFillUp(t *testing.T) {
	tr, room := simulation.New(nil), make(map[string]int)
	const nodes = 300
	for i := range nodes {
		name := "n" + strconv.Itoa(i)
		// In another order than the names, with two in each hour.
		tr.Set(mortal(name, int32(1+(i*7%nodes)/2)))
		room[name] = 1
	}
	last := int32(nodes)
	for range nodes {
		placed := tr.Place(1, func(name string) bool { return room[name] > 0 })
		if len(placed) != 1 {
			t.Fatal("there is room left")
		}
		room[placed[0]]--
		i, _ := strconv.Atoi(placed[0][1:])
		ends := int32(1 + (i*7%nodes)/2)
		if ends > last {
			t.Fatalf("%s ends in hour %d, and came after one of hour %d", placed[0], ends, last)
		}
		last = ends
	}
}
