// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestPlaceByRecords has the rule for records case by case: five failures mark a
// node, and what has failed is half-open unless the case says otherwise.
func TestPlaceByRecords(t *testing.T) {
	for _, tc := range []struct {
		name    string
		levels  string
		cluster string
		seeds   bool // the seeds' rule, without half-open
		k       int
		want    string
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
		{name: "not with a success anywhere", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=3\nb 1 0 failures=2\nc 1 0 proven room=0\nd 2 9", want: "a"},
		{name: "not as long as it may be one bad node", levels: "spread=az", k: 2,
			cluster: "a 1 0 failures=9\nb 1 1 unproven=1\nc 2 9", want: "b b"},
		{name: "half of the tried are not most", levels: "spread=az", k: 1, cluster: "a 1 0 failures=5\nb 1 1\nc 2 9", want: "b"},
		{name: "what an unready node has seen counts nowhere", levels: "spread=az", k: 2,
			cluster: "a 1 0 failures=3\nb 1 0 failures=4 unready\nc 2 9", want: "a a"},
		{name: "pods of the revision are a try", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=5\nb 1 1 room=0\nc 1 1 room=0\nd 1 0\ne 2 5", want: "d"},
		{name: "two nodes have failed, and with what is out it is enough", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=1 unforgiven=1\nb 1 1 failures=1 unforgiven=1 unproven=1\nc 1 2 unproven=2\nd 2 9", want: "d"},
		{name: "two nodes have failed, and with what is out it is not", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=1 unforgiven=1\nb 1 1 failures=1 unforgiven=1 unproven=1\nc 1 1 unproven=1\nd 2 9", want: "a"},
		{name: "one node has failed, and much is out", levels: "spread=az", k: 1,
			cluster: "a 1 0 failures=3 unforgiven=3\nb 1 3 unproven=3\nd 2 9", want: "a"},
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
		{name: "a tie goes to fewer unforgiven failures, before more nodes", levels: "spread=az", k: 1,
			cluster: "a 1 0 unforgiven=1\nb 1 0\nc 2 0", want: "c"},
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
