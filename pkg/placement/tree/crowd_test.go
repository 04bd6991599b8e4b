// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Crowds of nodes in one leaf, and of branches below one, stay in order whoever comes and goes. Other properties have few of each, and no
// heap of few is deep enough for all that can go wrong in one.
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

// At every count from 1 to 100 the branches have what Sainte-Laguë gives them. With up to three
// that is never more than one pod from the exact share, which no rule of this kind promises of more.
func TestSharesAreNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Int64Range(1, 100), 2, 8).Draw(t, "shares")
		var weights strings.Builder
		var nodes []placement.Node
		for i, share := range shares {
			zone := fmt.Sprintf("z%d", i)
			fmt.Fprintf(&weights, ";weight.%s=%d", zone, share)
			nodes = append(nodes, placement.Node{Name: zone, Values: []placement.Value{{Text: zone}}})
		}
		tr := simulation.New(parseLevels(t, "spread=zone"+weights.String()), nodes...)
		got, sum := make([]int64, len(shares)), int64(0)
		for _, share := range shares {
			sum += share
		}
		for k := int64(1); k <= 100; k++ {
			for _, name := range tr.Place(1, func(string) bool { return true }) {
				var at int
				if _, err := fmt.Sscanf(name, "z%d", &at); err != nil {
					t.Fatal(err)
				}
				got[at]++
			}
			placementtest.Must(t, sainteLague(shares, got, k))
			for i := range shares {
				// The distance of got[i] from k * share / sum is at most 1.
				if d := got[i]*sum - k*shares[i]; len(shares) <= 3 && (d > sum || -d > sum) {
					t.Fatalf("shares %v, %d pods: %v", shares, k, got)
				}
			}
		}
	})
}

// sainteLague judges by brute force: the pods are as many as there are, and no pod of a branch has a
// smaller quotient share / (2n-1) than another branch's next pod would have.
func sainteLague(shares, pods []int64, k int64) error {
	for i := range shares {
		k -= pods[i]
		for j := range shares {
			if pods[i] > 0 && big.NewRat(shares[i], 2*pods[i]-1).Cmp(big.NewRat(shares[j], 2*pods[j]+1)) < 0 {
				return fmt.Errorf("shares %v, pods %v: one of branch %d belongs to branch %d", shares, pods, i, j)
			}
		}
	}
	if k != 0 {
		return fmt.Errorf("shares %v, pods %v: %d are missing", shares, pods, k)
	}
	return nil
}

// A node that says it has more than any machine does must not turn the shares round.
func TestShareOfVeryMuch(t *testing.T) {
	tr := simulation.New(parseLevels(t, "spread=zone;share=Allocatable"))
	for zone, cpus := range map[string]int64{"a": 2e13, "b": 1e13} {
		tr.Set(placement.Node{Name: zone, Values: []placement.Value{{Text: zone}}, Usage: placement.Usage{CPU: placement.Amount{Allocatable: cpus}}})
	}
	pods := map[string]int{}
	for _, name := range tr.Place(6, func(string) bool { return true }) {
		pods[name]++
	}
	if pods["a"] != 4 || pods["b"] != 2 {
		t.Errorf("zones of which one has twice as much have %v pods", pods)
	}
}

// What is written of a decision is what its drawing has: at each level where there was something to choose the branch chosen and the
// first of the others, with their counts. The drawing ranks all nodes, and what is written asks for the best two.
func TestDecisionIsThatOfTheDrawing(t *testing.T) {
	checkShare(t, 10, func(t *rapid.T) {
		c := drawCluster(t, ordinary(t))
		for i := range c.nodes {
			c.nodes[i].Unready = false // they are drawn beside ready ones, and never chosen from
		}
		s := grow(t, c)
		name, ok := s.next()
		if !ok {
			return
		}
		drawn := slices.DeleteFunc(s.tree.Explain(s.fits).Steps, func(d drawing.Step) bool { return len(d.Candidates) < 2 })
		steps := slices.DeleteFunc(s.tree.Decision(name), func(d decision.Step) bool { return d.Next.Name == "" })
		if len(drawn) != len(steps) {
			t.Fatalf("%d choices are written, and %d drawn\n%v\n%v", len(steps), len(drawn), steps, drawn)
		}
		for i, step := range steps {
			for at, o := range []decision.Option{step.Chosen, step.Next} {
				if text := drawn[i].Candidates[at]; !counts(text, step.Level, o) {
					t.Errorf("%+v is written, and drawn is %s", o, text)
				}
			}
			if step.Relation == decision.InsteadOf {
				t.Errorf("%+v: what is chosen comes first", step)
			}
		}
		if last := s.tree.Decision(name); len(last) > 0 && last[len(last)-1].Level == decision.Node && last[len(last)-1].Chosen.Name != name {
			t.Errorf("%+v does not end with %s", last, name)
		}
		d := decision.Decision{Steps: s.tree.Decision(name)}
		if read, err := decision.Parse(d.String()); err != nil || !read.Cut && !slices.Equal(read.Steps, d.Steps) {
			t.Errorf("%s is read as %+v, %v", d.String(), read, err)
		}
	})
}

// counts reports that a drawing is of an option. Where each node has a value of its own, it is drawn by that.
func counts(text, level string, o decision.Option) bool {
	name := o.Name
	switch {
	case level == decision.Node:
		name = ""
	case name == decision.NoValue:
		name = "(no value)"
	}
	return strings.HasPrefix(text, name) && strings.Contains(text, fmt.Sprintf("(%d of the revision, %d of the workload, ", o.Revision, o.Workload))
}
