// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Crowds of nodes in one leaf, and of branches below one, stay in order whoever
// comes and goes. Other properties have few of each, and no heap of few is deep
// enough for all that can go wrong in one.
func TestCrowdsStayInOrder(t *testing.T) {
	checkShare(t, 2, func(t *rapid.T) {
		racks := rapid.SampledFrom([]int{0, 2, 50}).Draw(t, "racks")
		c := &cluster{rule: drawRule(t), unique: -1, room: make(map[string]int64)}
		if racks > 0 {
			c.levels = []level.Level{{Strategy: level.Spread, Property: level.Property{Label: "rack"}, NodesWithoutKey: level.OwnDomain}}
		}
		s := grow(t, c)
		node := func() placement.Node {
			n := placement.Node{Name: fmt.Sprintf("n%02d", rapid.IntRange(0, 99).Draw(t, "name")), Tally: drawCrowd(t)}
			if racks > 0 {
				n.Values = []placement.Value{{Text: fmt.Sprint("rack-", rapid.IntRange(1, racks).Draw(t, "rack"))}}
			}
			return n
		}
		for range rapid.IntRange(20, 60).Draw(t, "nodes") {
			s.set(node(), 3)
		}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			kind := rapid.IntRange(0, 4).Draw(t, "change")
			if len(s.nodes) == 0 {
				kind = 0
			}
			switch kind {
			case 0:
				s.set(node(), drawRoom(t))
			case 1:
				s.remove(s.anyNode().Name)
			case 2:
				s.add(s.anyNode().Name, onePod)
			case 3:
				s.recheck(s.anyNode().Name, drawRoom(t))
			case 4:
				s.next()
			}
		}
		s.next()
		names := make([]string, 0, len(s.nodes))
		for _, n := range s.nodes {
			names = append(names, n.Name)
		}
		for i, name := range names {
			if i%4 != 0 {
				s.tree.Remove(name)
			}
		}
		s.nodes = slices.DeleteFunc(s.nodes, func(n placement.Node) bool { return slices.Index(names, n.Name)%4 != 0 })
		s.validate()
		s.next()
	})
}

func drawCrowd(t *rapid.T) placement.Tally {
	pods := rapid.Int64Range(0, 9)
	revision := pods.Draw(t, "revision")
	workload := revision + pods.Draw(t, "of other revisions")
	return placement.Tally{Revision: revision, Workload: workload, All: workload + pods.Draw(t, "of others")}
}

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
