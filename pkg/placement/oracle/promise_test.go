// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestCheckPromise(t *testing.T) {
	for _, tc := range []struct {
		name, levels, cluster string
		k                     int
		placed                string
		want                  string // "" if the promise is kept
	}{
		{name: "even", levels: "spread=az", cluster: "a 1 0\nb 2 0\nc 3 0", k: 5, placed: "a b c a b"},
		{name: "whichever of the equals", levels: "spread=az", cluster: "a 1 0\nb 2 0\nc 3 0", k: 5, placed: "c b c b a"},
		{name: "uneven", levels: "spread=az", cluster: "a 1 0\nb 2 0\nc 3 0", k: 2, placed: "b b",
			want: `in all nodes: 1 0+0, 2 0+1, 3 0+1 is more even than 1 0+0, 2 0+2, 3 0+0`},
		{name: "SwarmKit's staircase", cluster: "a . 0\nb . 0\nc . 5", k: 6, placed: "a a b b b c",
			want: `in all nodes: a 0+1, b 0+5, c 5+0 is more even than a 0+2, b 0+3, c 5+1`},
		{name: "as even as the room allows", levels: "spread=az", cluster: "a 1 0 room=1\nb 2 0", k: 4, placed: "a b b b"},
		{name: "too few", levels: "spread=az", cluster: "a 1 0 room=1\nb 2 0 room=2", k: 4, placed: "a b", want: `2 of 4 pods were placed: there was room for 3`},
		{name: "all there was room for", levels: "spread=az", cluster: "a 1 0 room=1\nb 2 0 room=2", k: 4, placed: "a b b"},
		{name: "over the room", cluster: "a . 0 room=1\nb . 0", k: 2, placed: "a a", want: `node "a" has room for 1 pods and got 2`},
		{name: "on a node that is left out", levels: "spread=az;nodesWithoutKey=Exclude", cluster: "a - 0\nb 1 0", k: 1, placed: "a",
			want: `1 of 1 pods are on nodes that do not exist or are left out: ["a"]`},
		{name: "a faulty node is outside of it", cluster: "a . 0 failures=5", k: 1, placed: "a",
			want: `node "a" has failures, is unready or soft: the promise does not speak of such`},
		{name: "the second level, inside a branch", levels: "spread=az,spread=rack", cluster: "a 1/1 1\nb 1/2 0\nc 2/1 1", k: 1, placed: "a",
			want: `in all nodes, az "1": 1 1+0, 2 0+1 is more even than 1 1+1, 2 0+0`},
		{name: "the first level is first", levels: "spread=az,spread=rack", cluster: "a 1/1 0\nb 1/2 0\nc 2/1 1", k: 1, placed: "c",
			want: `in all nodes: 1 0+1, 2 1+0 is more even than 1 0+0, 2 1+1`},
		{name: "a tie at the first level is not for the second to break", levels: "spread=az,spread=rack",
			cluster: "a 1/1 1\nb 1/2 0 room=0\nc 2/1 1\nd 2/2 0", k: 1, placed: "a"},
		{name: "inside a rack that packing has filled", levels: "pack=rack", cluster: "a 1 0\nb 1 0\nc 2 0", k: 2, placed: "b b",
			want: `in all nodes, rack "1": a 0+1, b 0+1 is more even than a 0+0, b 0+2`},
		{name: "packing itself is not judged", levels: "pack=rack", cluster: "a 1 0\nb 2 0\nc 3 0", k: 2, placed: "a b"},
		{name: "70 to 30", levels: "spread=az;weight.1=70;weight.2=30", cluster: "a 1 0\nb 2 0", k: 4, placed: "a b a b",
			want: `in all nodes: 1 0+3, 2 0+1 is more even than 1 0+2, 2 0+2`},
		{name: "the branch of others is one", levels: "spread=az;weight.1=1;weight.*=1", cluster: "a 1 0\nb 2 0\nc 3 0", k: 2, placed: "b c",
			want: `in all nodes: 1 0+1, * 0+1 is more even than 1 0+0, * 0+2`},
		{name: "and even inside", levels: "spread=az;weight.1=1;weight.*=1", cluster: "a 1 5\nb 2 0\nc 3 0", k: 2, placed: "b b",
			want: `in all nodes, az "*": 2 0+1, 3 0+1 is more even than 2 0+2, 3 0+0`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes, room := cluster(t, tc.cluster)
			err := oracle.CheckPromise(parseLevels(t, tc.levels), nodes, tc.k, func(n string) int { return room[n] }, strings.Fields(tc.placed))
			if tc.want == "" {
				if err != nil {
					t.Errorf("the promise is kept, but: %v", err)
				}
				return
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// Where all branches weigh the same, the promise is also said in final counts. This
// holds CheckPromise to that sentence over all divisions of a few pods.
func TestPromiseInFinalCounts(t *testing.T) {
	const k = 4
	rng := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c"}
	for range 200 {
		text, room, start := "", map[string]int{}, []int{}
		for _, n := range names {
			c := rng.IntN(4)
			text += n + " " + n + " " + string(rune('0'+c)) + "\n"
			start, room[n] = append(start, c), 1+rng.IntN(4)
		}
		nodes, _ := cluster(t, text)
		var lowest []int // final counts, highest first
		finals := make(map[string][]int)
		var each func(got []int, left int)
		each = func(got []int, left int) {
			if len(got) < len(names) {
				for n := 0; n <= min(left, room[names[len(got)]]); n++ {
					each(append(got, n), left-n)
				}
				return
			}
			if left > 0 {
				return
			}
			var placed []string
			final := slices.Clone(start)
			for i, n := range got {
				placed = append(placed, slices.Repeat([]string{names[i]}, n)...)
				final[i] += n
			}
			slices.SortFunc(final, func(a, b int) int { return cmp.Compare(b, a) })
			finals[strings.Join(placed, " ")] = final
			if lowest == nil || slices.Compare(final, lowest) < 0 {
				lowest = final
			}
		}
		each(nil, k)
		for placed, final := range finals {
			err := oracle.CheckPromise(parseLevels(t, "spread=az"), nodes, k, func(n string) int { return room[n] }, strings.Fields(placed))
			if even := slices.Equal(final, lowest); even != (err == nil) {
				t.Errorf("on\n%sroom %v, pods on %q end at %v, the lowest is %v, but CheckPromise says: %v", text, room, placed, final, lowest, err)
			}
		}
	}
}

func TestBestClass(t *testing.T) {
	for _, tc := range []struct{ name, levels, cluster, want string }{
		{name: "no node fits", cluster: "a . 0 room=0", want: ""},
		{name: "equals", cluster: "a . 1\nb . 0\nc . 0\nd . 0 room=0", want: "b c"},
		{name: "fewer pods of the workload", cluster: "a . 0/1/1\nb . 0/0/1", want: "b"},
		{name: "fewer pods in all", cluster: "a . 0/0/1\nb . 0/0/0", want: "b"},
		{name: "faulty and unready nodes are no equals", cluster: "a . 0 failures=5\nb . 0 unready\nc . 0", want: "c"},
		{name: "the best of each of two equal branches", levels: "spread=az", cluster: "a 1 0\nb 1 1\nc 2 0\nd 2 1", want: "a c"},
		{
			name:   "no matter what the best of the other looks like, and not what looks alike in it",
			levels: "spread=az", cluster: "a 1 1\nb 1 1\nc 2 0\nd 2 2\ne 3 1\nf 3 1", want: "a b c e f",
		},
		{name: "a branch with more nodes is an equal", levels: "spread=az", cluster: "a 1 0\nb 2 0\nc 2 0", want: "a b c"},
		{name: "a branch with a higher load is not", levels: "spread=az", cluster: "a 1 0/0/1\nb 2 0\nc 2 0", want: "b c"},
		{name: "equal branches in unequal ones", levels: "spread=az,spread=rack", cluster: "a 1/1 0\nb 1/2 0\nc 2/1 0\nd 2/2 1", want: "a b"},
		{name: "equal loads of unequal weights", levels: "spread=az;weight.1=2;weight.2=6", cluster: "a 1 0/0/1\nb 2 1", want: "a b"},
		{name: "a node left out", levels: "spread=az;nodesWithoutKey=Exclude", cluster: "a - 0\nb 1 0", want: "b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes, room := cluster(t, tc.cluster)
			levels := parseLevels(t, tc.levels)
			fits := func(n string) bool { return room[n] > 0 }
			got := oracle.BestClass(levels, placement.Faults{}, nodes, placementtest.Request, fits)
			if diff := gocmp.Diff(strings.Fields(tc.want), append([]string{}, got...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if pick, ok := oracle.Pick(levels, placement.Faults{}, nodes, placementtest.Request, fits); ok && !slices.Contains(got, pick) {
				t.Errorf("Pick takes %q, which is not of the best class %v", pick, got)
			}
		})
	}
}

func TestMayAsk(t *testing.T) {
	for _, tc := range []struct{ name, levels, cluster, fit, refused, want string }{
		{name: "the best node of a leaf", cluster: "a . 1\nb . 0\nc . 0", want: "b"},
		{name: "then the next best", cluster: "a . 1\nb . 0\nc . 0", refused: "b", want: "c"},
		{name: "none is left", cluster: "a . 1\nb . 0", refused: "a b", want: ""},
		{name: "a lower branch is not compared by nodes", levels: "spread=az", cluster: "a 1 0\nb 2 1\nc 2 1", want: "a"},
		{name: "nor is one that ties", levels: "spread=az", cluster: "a 1 0\nb 2 0\nc 2 0", want: "a"},
		{name: "nodes that fit do not change a tie", levels: "spread=az", cluster: "a 1 0\nb 2 0\nc 2 0\nd 2 0", fit: "c d", want: "a"},
		{name: "a refusal of all may", levels: "spread=az", cluster: "a 1 0\nb 2 0\nc 2 0", refused: "a", want: "b"},
		{name: "not a node left out", levels: "spread=az;nodesWithoutKey=Exclude", cluster: "a - 0\nb 1 1", want: "b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes, _ := cluster(t, tc.cluster)
			fit, refused := strings.Fields(tc.fit), strings.Fields(tc.refused)
			got := oracle.MayAsk(parseLevels(t, tc.levels), placement.Faults{}, nodes, placementtest.Request, func(n string) (bool, bool) {
				return slices.Contains(fit, n), slices.Contains(fit, n) || slices.Contains(refused, n)
			})
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestPlaceByRecords has the rule for records case by case: five failures mark a
// node, and what has failed is half-open unless the case says otherwise.
func TestPlaceByRecords(t *testing.T) {
	for _, tc := range []struct {
		name, levels, cluster string
		seeds                 bool // the seeds' rule, without half-open
		k                     int
		want                  string
	}{
		{name: "the seeds: four failures are none", seeds: true, k: 3, cluster: "a . 0 failures=4 unforgiven=4\nb . 0", want: "a b a"},
		{name: "the seeds: five are", seeds: true, k: 3, cluster: "a . 0 failures=5 unforgiven=5\nb . 0", want: "b b b"},
		{name: "the seeds: no zone is faulty as a whole", seeds: true, levels: "spread=az", k: 2,
			cluster: "a 1 0 failures=4 unforgiven=4\nb 1 0 failures=4 unforgiven=4\nc 2 0", want: "a c"},

		// Nodes.
		{name: "one unproven pod at a time", k: 4, cluster: "a . 0 failures=1 unforgiven=1\nb . 2", want: "a b b b"},
		{name: "as many as one likes after a success", k: 3, cluster: "a . 0 failures=1 unforgiven=1 proven\nb . 3", want: "a a a"},
		{name: "on trial for what is out of the window as well", k: 2, cluster: "a . 0 unforgiven=9 unproven=1\nb . 2", want: "b b"},
		{name: "no trial without a failure", k: 2, cluster: "a . 0 unproven=9\nb . 2", want: "a a"},
		{name: "on trial, before a faulty one", k: 2, cluster: "a . 0 unforgiven=1 unproven=1\nb . 0 failures=5\nc . 0 unready", want: "a a"},
		{name: "among those on trial, the fewest pods", k: 2, cluster: "a . 1 unforgiven=1 unproven=1\nb . 0 unforgiven=3 unproven=1", want: "b a"},
		{name: "a tie goes to fewer unforgiven failures, before pods in all", k: 1, cluster: "a . 0/0/0 unforgiven=2\nb . 0/0/9 unforgiven=1", want: "b"},
		{name: "and after pods of the workload", k: 1, cluster: "a . 0/0/0 unforgiven=2\nb . 0/1/1", want: "a"},

		// Branches.
		{name: "a zone whose nodes are all on trial is", levels: "spread=az", k: 2, cluster: "a 1 0 unforgiven=1 unproven=1\nb 2 7", want: "b b"},
		{name: "it comes before a zone of faulty nodes, and that before one that is not ready", levels: "spread=az", k: 3,
			cluster: "a 1 0 unready\nb 2 1 failures=5 room=1\nc 3 2 unforgiven=1 unproven=1 room=1", want: "c b a"},
		{name: "faulty as a whole: what has not been tried either", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=3\nb 1 0 failures=2\nc 1 0\nd 2 9", want: "d"},
		{name: "before a zone with nothing but faulty nodes", levels: "spread=az", k: 1,
			cluster: "a 1 3 failures=3\nb 1 3 failures=2\nc 1 2\nd 2 0 failures=5\ne 2 1 proven room=0", want: "c"},
		{name: "not with a success anywhere", levels: "spread=az", k: 1, cluster: "a 1 0 failures=3\nb 1 0 failures=2\nc 1 0 proven room=0\nd 2 9", want: "a"},
		{name: "not as long as it may be one bad node", levels: "spread=az", k: 2, cluster: "a 1 0 failures=9\nb 1 1 unproven=1\nc 2 9", want: "b b"},
		{name: "half of the tried are not most", levels: "spread=az", k: 1, cluster: "a 1 0 failures=5\nb 1 1\nc 2 9", want: "b"},
		{name: "what an unready node has seen counts nowhere", levels: "spread=az", k: 2,
			cluster: "a 1 0 failures=3\nb 1 0 failures=4 unready\nc 2 9", want: "a a"},
		{name: "pods of the revision are a try", levels: "spread=az", k: 1, cluster: "a 1 0 failures=5\nb 1 1 room=0\nc 1 1 room=0\nd 1 0\ne 2 5", want: "d"},
		{name: "two nodes have failed, and with what is out it is enough", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=1 unforgiven=1\nb 1 1 failures=1 unforgiven=1 unproven=1\nc 1 2 unproven=2\nd 2 9", want: "d"},
		{name: "two nodes have failed, and with what is out it is not", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=1 unforgiven=1\nb 1 1 failures=1 unforgiven=1 unproven=1\nc 1 1 unproven=1\nd 2 9", want: "a"},
		{name: "one node has failed, and much is out", levels: "spread=az", k: 1, cluster: "a 1 0 failures=3 unforgiven=3\nb 1 3 unproven=3\nd 2 9", want: "a"},
		{name: "tried again when the failures are out of the window", levels: "spread=az", k: 3,
			cluster: "a 1 0 unforgiven=3\nb 1 0 unforgiven=3\nc 2 2", want: "a c c"},
		{name: "on trial with a pod on a node that never failed", levels: "spread=az", k: 1,
			cluster: "a 1 0 unforgiven=3\nb 1 0 unforgiven=3\nc 1 1 unproven=1\nd 2 2", want: "d"},
		{name: "a rack is a branch like any", levels: "spread=az,spread=rack", k: 2,
			cluster: "a 1/1 0 failures=5\nb 1/1 0\nc 1/2 4 proven\nd 2/1 9", want: "c c"},
		{name: "a zone is no better than its racks", levels: "spread=az,spread=rack", k: 1,
			cluster: "a 1/1 0 failures=5\nb 1/1 0\nc 1/2 4 proven room=0\nd 2/1 9", want: "d"},
		{name: "nor are the values of a star", levels: "spread=az;weight.1=1;weight.*=1", k: 1,
			cluster: "a 2 0 failures=5\nb 2 0\nc 3 4 proven room=0\nd 1 9", want: "d"},
		{name: "packing: not in a faulty rack", levels: "pack=rack", k: 1, cluster: "a 1 5 failures=5\nb 1 0\nc 2 0", want: "c"},
		{name: "a tie goes to fewer unforgiven failures, before more nodes", levels: "spread=az", k: 1, cluster: "a 1 0 unforgiven=1\nb 1 0\nc 2 0", want: "c"},
		{name: "and after pods of the workload, of branches too", levels: "spread=az", k: 1, cluster: "a 1 0/0 unforgiven=1\nb 2 0/1", want: "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes, room := cluster(t, tc.cluster)
			rule := placement.Faults{Threshold: 5, HalfOpen: !tc.seeds}
			got := oracle.Place(parseLevels(t, tc.levels), rule, nodes, tc.k, placementtest.Request, within(room))
			if s := strings.Join(got, " "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

// A lazy decision may look at whatever a standing could turn on.
func TestMayAskByRecords(t *testing.T) {
	nodes, _ := cluster(t, "a 1 0 unforgiven=1 unproven=1\nb 1 5\nc 2 7 unforgiven=1\nd 2 7")
	for _, tc := range []struct{ refused, want string }{
		{"", "b"},
		{"b", "d"}, // with a alone zone 1 is on trial
		{"b d", "c"},
		{"b c d", "a"},
	} {
		refused := strings.Fields(tc.refused)
		got := oracle.MayAsk(parseLevels(t, "spread=az"), placement.Faults{HalfOpen: true}, nodes, placementtest.Request, func(n string) (bool, bool) {
			return false, slices.Contains(refused, n)
		})
		if got != tc.want {
			t.Errorf("with %q refused, may ask %q, want %q", tc.refused, got, tc.want)
		}
	}
}
