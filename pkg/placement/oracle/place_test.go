// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// cluster reads nodes from lines such as
//
//	n1 az1/r1 3/4/9 failures=5 unforgiven=5 proven unproven=1 unready room=2
//
// which are: a name; a value for each level ("-" where the node has no such property,
// two single quotes for an empty one, "." where there are no levels); pods of revision/workload/all (those left out are as the one before).
func cluster(t *testing.T, text string) ([]placement.Node, map[string]int) {
	t.Helper()
	var nodes []placement.Node
	room := make(map[string]int)
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fields := strings.Fields(line)
		n := placement.Node{Name: fields[0]}
		room[n.Name] = 1000
		if fields[1] != "." {
			for v := range strings.SplitSeq(fields[1], "/") {
				n.Values = append(n.Values, placement.Value{Text: strings.Trim(v, "-'"), Missing: v == "-"})
			}
		}
		counts := strings.Split(fields[2], "/")
		n.Tally.Revision = number(t, counts[0])
		n.Tally.Workload = number(t, counts[min(1, len(counts)-1)])
		n.Tally.All = number(t, counts[len(counts)-1])
		n.Usage = placementtest.Usage(n.Tally.All)
		for _, f := range fields[3:] {
			switch key, value, _ := strings.Cut(f, "="); key {
			case "failures":
				n.Failures = int(number(t, value))
			case "unforgiven":
				n.Unforgiven = int(number(t, value))
			case "proven":
				n.Proven = true
			case "unproven":
				n.Unproven = number(t, value)
			case "unready":
				n.Unready = true
			case "room":
				room[n.Name] = int(number(t, value))
			default:
				t.Fatalf("cluster has the unknown word %q", f)
			}
		}
		nodes = append(nodes, n)
	}
	return nodes, room
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	placementtest.Must(t, err)
	return n
}

func parseLevels(t *testing.T, s string) []level.Level {
	t.Helper()
	if s == "" {
		return nil
	}
	levels, err := level.Parse(s)
	placementtest.Must(t, err)
	return levels
}

func within(room map[string]int) func(string, int) bool {
	return func(node string, placed int) bool { return placed < room[node] }
}

// TestPlace has the cases by hand. Those where SwarmKit's fill came out uneven say what it did.
func TestPlace(t *testing.T) {
	for _, tc := range []struct {
		name, levels, cluster string
		k                     int
		want                  string // in the order of placing
	}{
		// Nodes without levels.
		{name: "five empty nodes and 18 pods", k: 18, cluster: "a . 0\nb . 0\nc . 0\nd . 0\ne . 0", want: "a b c d e a b c d e a b c d e a b c"},
		{name: "a second workload goes where there is less of the first", k: 2, cluster: "a . 0/0/4\nb . 0/0/4\nc . 0/0/4\nd . 0/0/3\ne . 0/0/3", want: "d e"},
		{name: "not where its own pod is, though there is least", k: 1, cluster: "a . 0/0/9\nb . 1/1/1", want: "a"},
		{name: "a node that was emptied", k: 4, cluster: "a . 0\nb . 4\nc . 4\nd . 4\ne . 5", want: "a a a a"},
		{name: "a loaded node (SwarmKit: 2/7/1)", k: 10, cluster: "a . 0\nb . 0\nc . 5", want: "a b a b a b a b a b"},
		{name: "four nodes and a loaded one (SwarmKit: 2/2/3/11/2)", k: 20, cluster: "a . 0\nb . 0\nc . 0\nd . 0\ne . 9",
			want: "a b c d a b c d a b c d a b c d a b c d"},
		{name: "stairs (SwarmKit: 2/2/2/0)", k: 6, cluster: "a . 0\nb . 1\nc . 2\nd . 3", want: "a a b a b c"},
		{name: "a faulty node (SwarmKit: 1/9/0)", k: 10, cluster: "a . 0\nb . 0\nc . 0 failures=5", want: "a b a b a b a b a b"},
		{name: "even", k: 10, cluster: "a . 0\nb . 0\nc . 0", want: "a b c a b c a b c a"},
		{name: "two pods on stairs", k: 2, cluster: "a . 4\nb . 3\nc . 2\nd . 1\ne . 0", want: "e d"},
		{name: "faulty nodes only: the least faulty", k: 4, cluster: "a . 0 failures=7\nb . 0 failures=6\nc . 0 failures=5", want: "c c c c"},
		{name: "good nodes first, as long as they have room", k: 6, cluster: "a . 0 room=2\nb . 0 failures=5\nc . 0 room=2", want: "a c a c b b"},
		{name: "room of one", k: 9, cluster: "a . 0 room=1\nb . 0\nc . 0", want: "a b c b c b c b c"},
		{name: "no more than there is room", k: 5, cluster: "a . 0 room=1\nb . 0 room=1\nc . 0 room=1", want: "a b c"},
		{name: "an unready node is the last, after a faulty one", k: 3, cluster: "a . 0 unready\nb . 5 room=1\nc . 0 failures=9 room=1", want: "b c a"},
		{name: "among unready nodes, the same order", k: 3, cluster: "a . 0 unready failures=6\nb . 2 unready\nc . 1 unready", want: "c b c"},
		{name: "revision, then workload, then all, then name", k: 1, cluster: "a . 1/1/1\nb . 0/2/2\nc . 0/1/5\ne . 0/1/4\nd . 0/1/4", want: "d"},
		{name: "no nodes", k: 3, cluster: "a . 0 room=0", want: ""},

		// One level.
		{name: "one node against four", levels: "spread=az", k: 8, cluster: "a 1 0\nb 2 0\nc 2 0\nd 2 0\ne 2 0", want: "a b c a d a e a"},
		{name: "100/0/0 (SwarmKit: all ten in one)", levels: "spread=az", k: 10, cluster: "a 1 100\nb 2 0\nc 3 0", want: "b c b c b c b c b c"},
		{name: "10/0/0 (SwarmKit: 6/0)", levels: "spread=az", k: 6, cluster: "a 1 10\nb 2 0\nc 3 0", want: "b c b c b c"},
		{name: "3/0/0 (SwarmKit: 2/0)", levels: "spread=az", k: 2, cluster: "a 1 3\nb 2 0\nc 3 0", want: "b c"},
		{name: "3/1/0 (SwarmKit: either of the last)", levels: "spread=az", k: 1, cluster: "a 1 3\nb 2 1\nc 3 0", want: "c"},
		{name: "pods on a node without room count", levels: "spread=az", k: 4, cluster: "a 1 6 room=0\nb 1 0\nc 2 0", want: "c c c c"},
		{name: "a zone without room", levels: "spread=az", k: 6, cluster: "a 1 6 room=0\nb 2 0\nc 3 3", want: "b b b b c b"},
		{name: "a full zone gives way", levels: "spread=az", k: 12, cluster: "a 1 0 room=2\nb 2 0\nc 3 0", want: "a b c a b c b c b c b c"},
		{name: "pods on an unready node do not count", levels: "spread=az", k: 2, cluster: "a 1 9 unready\nb 1 0\nc 2 1", want: "b c"},
		{name: "pods on an unready node do not count, of the workload either", levels: "spread=az", k: 1, cluster: "a 2 0/1\nb 1 0/9 unready\nc 1 0", want: "c"},
		{name: "nodes without the label are a branch", levels: "spread=az", k: 9, cluster: "a 1 0\nb 2 0\nc - 0\nd - 0", want: "c a b d a b c a b"},
		{name: "an empty value is the same branch", levels: "spread=az", k: 3, cluster: "a 1 0\nb - 1\nc '' 0", want: "a c a"},
		{name: "nodes without the label are left out, with their pods", levels: "spread=az;nodesWithoutKey=Exclude", k: 3, cluster: "a 1 0\nb - 0\nc 2 1", want: "a a c"},
		{name: "all nodes are left out", levels: "spread=az;nodesWithoutKey=Exclude", k: 3, cluster: "a - 0\nb - 0", want: ""},
		{name: "then fewest of the workload", levels: "spread=az", k: 1, cluster: "a 1 1/4\nb 2 1/3", want: "b"},
		{name: "then the lower load, also of nodes without room", levels: "spread=az", k: 1, cluster: "a 1 0/0/1\nb 1 0/0/5 room=0\nc 2 0/0/2\nd 2 0/0/2", want: "c"},
		{name: "then the value in byte order", levels: "spread=az", k: 3, cluster: "a b 0\nb B 0\nc 9 0\nd 9 0", want: "c b a"},
		{name: "values of one node each are the nodes", levels: "spread=az", k: 3, cluster: "a b 0\nb B 0\nc 9 0", want: "a b c"},
		{name: "a broken zone is the last", levels: "spread=az", k: 4, cluster: "a 1 0 failures=5\nb 1 0 unready\nc 2 3 room=3", want: "c c c a"},
		{name: "a healthy node without room does not make a zone healthy", levels: "spread=az", k: 1, cluster: "a 1 0 failures=5\nb 1 0 room=0\nc 2 3", want: "c"},
		{name: "in a zone with a healthy node, that one", levels: "spread=az", k: 2, cluster: "a 1 0 failures=5\nb 1 2\nc 2 3", want: "b b"},

		// Several levels.
		{name: "dc1{10,0} dc2{5,5} (SwarmKit: 14/10)", levels: "spread=dc,spread=rack", k: 4, cluster: "a 1/1 10\nb 1/2 0\nc 2/1 5\nd 2/2 5", want: "b c b d"},
		{name: "scale-up (SwarmKit: both in one)", levels: "spread=dc,spread=rack", k: 2, cluster: "n11 1/1 3\nn12 1/2 1\nn21 2/1 3", want: "n21 n12"},
		{name: "memory for five, racks of three and two", levels: "spread=az,spread=rack", k: 12,
			cluster: "n0 1/1 0 room=0\nn1 1/1 0 room=5\nn2 2/1 0 room=6\nn3 2/1 0 room=6\nn4 2/1 0 room=6\nn5 2/2 0 room=6\nn6 2/2 0 room=6",
			want:    "n1 n2 n5 n1 n3 n1 n6 n1 n4 n1 n5 n2"},
		{name: "region of three zones, region of two", levels: "spread=region,spread=zone", k: 5,
			cluster: "a a/1 0\nb a/2 0\nc a/3 0\nd b/1 0\ne b/2 0", want: "a d b e c"},
		{name: "equal values in different parents are different branches", levels: "spread=az,spread=rack", k: 2,
			cluster: "a 1/1 0\nb 1/2 3\nc 2/1 9\nd 2/2 0", want: "a a"},
		{name: "left out at a deeper level is left out of all", levels: "spread=az,spread=rack;nodesWithoutKey=Exclude", k: 2,
			cluster: "a 1/- 9\nb 1/1 0\nc 2/1 1", want: "b b"},
		{name: "a node is a level", levels: "spread=az,spread=node.name", k: 3, cluster: "a 1/a 1\nb 1/b 0\nc 2/c 1", want: "b c a"},

		// Weights.
		{name: "70 to 30 over ten pods", levels: "spread=az;weight.1=70;weight.2=30", k: 10, cluster: "a 1 0\nb 2 0", want: "a b a a b a a a b a"},
		{name: "an unlisted value weighs 1", levels: "spread=az;weight.1=2", k: 6, cluster: "a 1 0\nb 2 0\nc 3 0", want: "a b c a a b"},
		{name: "unlisted values share a weight, evenly", levels: "spread=az;weight.1=2;weight.*=2", k: 8, cluster: "a 1 0\nb 2 0\nc 3 0", want: "b a c a b a c a"},
		{name: "the branch of others is even over values, not nodes", levels: "spread=az;weight.1=1;weight.*=1", k: 4,
			cluster: "a 1 9\nb 2 0\nc 2 0\nd 3 0", want: "b d c d"},
		{name: "the branch of others sorts as its star: after none, before digits", levels: "spread=az;weight.=1;weight.1=1;weight.*=1", k: 3,
			cluster: "a 1 0\nb - 0\nc !x 0", want: "b c a"},
		{name: "nodes without the label have a weight", levels: "spread=az;weight.=3;weight.1=1", k: 4, cluster: "a 1 0\nb - 0", want: "b a b b"},
		{name: "nodes without the label are others", levels: "spread=az;weight.1=1;weight.*=1", k: 3, cluster: "a 1 9\nb - 0\nc 2 0", want: "b c b"},
		{name: "weights apply to what there is", levels: "spread=az;weight.1=3;weight.2=1", k: 2, cluster: "a 1 9\nb 2 2", want: "b a"},
		{name: "fractions are exact, where floats are equal", levels: "spread=az;weight.1=1000000;weight.2=999999", k: 1, cluster: "a 1 999999999998\nb 2 999998999998", want: "b"},

		// Packing.
		{name: "the fullest that has room", levels: "pack=rack", k: 4, cluster: "a 1 1 room=2\nb 2 2 room=0\nc 3 0", want: "a a c c"},
		{name: "packing: then most of the workload", levels: "pack=rack", k: 1, cluster: "a 1 1/1\nb 2 1/2", want: "b"},
		{name: "packing: then the lower load", levels: "pack=rack", k: 3, cluster: "a 1 0/0/2\nb 2 0/0/1\nc 2 0/0/1", want: "b c b"},
		{name: "packing: not in a broken rack", levels: "pack=rack", k: 1, cluster: "a 1 5 failures=5\nb 2 0", want: "b"},
		{name: "pack racks, spread hosts", levels: "pack=rack,spread=node.name", k: 5,
			cluster: "a 1/a 0 room=2\nb 1/b 0 room=2\nc 2/c 0\nd 2/d 0", want: "a b a b c"},
		{name: "spread zones, pack racks", levels: "spread=az,pack=rack", k: 4, cluster: "a 1/1 0\nb 1/2 1\nc 2/1 0\nd 2/2 1", want: "b d b d"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes, room := cluster(t, tc.cluster)
			levels := parseLevels(t, tc.levels)
			before := slices.Clone(nodes)
			got := oracle.Place(levels, placement.Faults{}, nodes, tc.k, placementtest.Request, within(room))
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
			if diff := cmp.Diff(before, nodes); diff != "" {
				t.Errorf("Place changed the caller's nodes:\n%s", diff)
			}
		})
	}
}
