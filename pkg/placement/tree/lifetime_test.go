// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

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
