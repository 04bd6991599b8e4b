// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// A leaf of many thousand nodes is not looked at node by node. What is chosen in it is held against a survey that
// does: while nodes without pods are left, when few are, and when none is.
func TestLargeLeaf(t *testing.T) {
	random := rand.New(rand.NewPCG(placementtest.Seed(), 0))
	const nodes = 9000
	name := func(i int) string { return fmt.Sprintf("n%04d", i) }
	for _, empty := range []int{nodes, 20, 0} {
		tr := simulation.New(nil)
		tr.Request = placementtest.Request
		for i := range nodes {
			n := placement.Node{Name: name(i), Usage: placementtest.Usage(random.Int64N(3))}
			if i < nodes-empty {
				n.Tally = placement.Tally{Revision: 1 + random.Int64N(2), Workload: 2, All: 2}
			}
			tr.Set(n)
		}
		for range 60 {
			if placed := tr.Place(10, func(string) bool { return random.IntN(10) > 0 }); len(placed) != 10 {
				t.Fatalf("%d of 10 pods are placed", len(placed))
			}
			tr.Add(name(random.IntN(nodes)), placement.Tally{Revision: 1, Workload: 1, All: 1})
			if err := tr.Validate(); err != nil {
				t.Fatalf("with %d nodes empty at first: %v", empty, err)
			}
		}
	}
}

// A cluster that loses all its nodes at once costs no look at all of them for each.
func TestManyNodesGoAtOnce(t *testing.T) {
	const many = 400_000
	name := func(i int) string { return fmt.Sprintf("n%06d", i) }
	nodes := tree.NewNodes(many)
	for i := range many {
		nodes.Set(name(i), tree.Facts{})
	}
	start := time.Now()
	for i := many - 1; i >= 0; i-- {
		if i%1000 != 7 {
			nodes.Remove(name(i))
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("to remove them took %s", took)
	}
	nodes.Set("n000000", tree.Facts{})
	all := nodes.All()
	if len(all) != many/1000+1 || nodes.Len() != len(all) {
		t.Fatalf("%d nodes are left, and %d are listed", nodes.Len(), len(all))
	}
	for i, id := range all {
		want := "n000000"
		if i > 0 {
			want = name((i-1)*1000 + 7)
		}
		if got := nodes.Name(id); got != want {
			t.Fatalf("node %d is %s, want %s", i, got, want)
		}
	}
}
