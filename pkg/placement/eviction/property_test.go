// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "4000"})
	m.Run()
}

// drawCluster draws nodes, allocations in teams, and pods of which some run.
func drawCluster(t *rapid.T) *cluster {
	vector := func(label string, least, most int64) allocation.Vector {
		return rapid.SliceOfN(rapid.Int64Range(least, most), 2, 2).Draw(t, label)
	}
	c := &cluster{limit: rapid.IntRange(0, 2).Draw(t, "limit"), allowed: rapid.SliceOfN(rapid.IntRange(0, 2), 2, 2).Draw(t, "allowed")}
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		c.nodes = append(c.nodes, node{
			name: fmt.Sprint("n", i), domain: rapid.SampledFrom([]string{"left", "right"}).Draw(t, "domain"),
			capacity: vector("capacity", 4, 7), down: rapid.IntRange(0, 9).Draw(t, "down") == 0,
		})
	}
	leaf := rapid.Custom(func(t *rapid.T) allocation.Allocation {
		return allocation.Allocation{
			Reserved: vector("reserved", 0, 6), Rank: rapid.SampledFrom([]int{100, 100, 90}).Draw(t, "rank"),
			Adjustment: rapid.IntRange(0, 3).Draw(t, "adjustment"), MaxUtilization: rapid.SampledFrom([]float64{0, 1, 1, 1.5}).Draw(t, "maximum"),
		}
	})
	leaves := rapid.SliceOfN(leaf, 2, 5).Draw(t, "leaves")
	c.counts = rapid.SliceOfN(rapid.IntRange(0, 3), len(leaves), len(leaves)).Draw(t, "counts")
	c.tree = func() (*allocation.Allocation, []*allocation.Allocation) {
		root, its := &allocation.Allocation{}, []*allocation.Allocation(nil)
		for i := range leaves {
			a := leaves[i]
			a.Name = fmt.Sprint("leaf", i)
			its = append(its, &a)
			if i%2 == 0 {
				root.Children = append(root.Children, &allocation.Allocation{Name: fmt.Sprint("team", i)})
			}
			team := root.Children[len(root.Children)-1]
			team.Children = append(team.Children, &a)
		}
		return root, its
	}
	demand := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 2, 3, 5, 8}), 2, 2)
	for i := range rapid.IntRange(4, 16).Draw(t, "pods") {
		p := &pod{
			Pod: allocation.Pod{
				Key: fmt.Sprint("p", i), Demand: demand.Draw(t, "demand"), Priority: rapid.IntRange(0, 2).Draw(t, "priority"),
				Arrival: rapid.Int64Range(0, 3).Draw(t, "arrival"),
			},
			of: rapid.IntRange(0, len(leaves)-1).Draw(t, "of"), limited: rapid.Bool().Draw(t, "limited"), numbered: rapid.IntRange(0, 3).Draw(t, "numbered") == 0,
		}
		if b := rapid.IntRange(0, 3).Draw(t, "budget"); b < 2 {
			p.budgets = []int{b}
		}
		c.pods = append(c.pods, p)
	}
	// The last ones have the best places, so that something is to be done.
	order := c.order()
	slices.Reverse(order)
	for _, p := range order {
		if p.entry.Class != allocation.StandsBy && rapid.IntRange(0, 3).Draw(t, "waits") > 0 {
			c.place(p)
		}
	}
	return c
}

// What Walk promises, of any pod that waits: only pods after it go, it fits then, and it would not if any victim stayed. If there is
// no plan it fits nowhere, whoever after it goes.
func TestPropertyWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		order := c.order()
		for _, p := range order {
			if !p.mayBeTried() {
				continue
			}
			for _, n := range c.nodes {
				if c.fits(p, n.name) {
					return // nobody has to go
				}
			}
			w, plan, ok := c.walk(p, order)
			if !ok {
				fitsWithoutTail(t, w)
				continue
			}
			checkPlan(t, w, plan)
			return
		}
	})
}

// fitsWithoutTail wants a preemptor to fit nowhere without the pods after it.
func fitsWithoutTail(t *rapid.T, w *world) {
	for i := range w.tail {
		if w.tail[i].node != w.nodes[i] {
			t.Fatalf("%s was not put back", w.tail[i].Key)
		}
		if !w.stay[i] {
			w.Remove(i)
		}
	}
	for _, n := range w.cluster.nodes {
		if w.Fits(n.name) {
			t.Fatalf("%s fits on %s if all after it go", w.preemptor.Key, n.name)
		}
	}
	for i := range w.tail {
		w.Restore(i)
	}
}

func checkPlan(t *rapid.T, w *world, plan Plan) {
	if len(plan.Victims) == 0 || !w.Fits(plan.Node) {
		t.Fatalf("%s does not fit on %s, without %v", w.preemptor.Key, plan.Node, plan.Victims)
	}
	for i := range w.tail {
		if isVictim := slices.Contains(plan.Victims, i); isVictim != (w.tail[i].node == "") {
			t.Fatalf("%s is a victim: %t, and is on %q", w.tail[i].Key, isVictim, w.tail[i].node)
		}
	}
	for _, i := range plan.Victims {
		if w.Restore(i); w.Fits(plan.Node) {
			t.Fatalf("%s went in vain", w.tail[i].Key)
		}
		w.Remove(i)
	}
}

// From any state a cluster comes to rest, as nobody changes what is wanted, reserved or there. Of two pods one at most has made way for
// the other, and of two siblings of one rank nobody within the reservation makes way for one beyond it. That holds whatever waits beyond the
// maximum, or for others of its group. Pods that were evicted come back as new ones, the youngest of all, as those of a ReplicaSet do.
func TestPropertyNobodyDisplacesEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		made := map[evicted]bool{}
		for steps := 0; ; steps++ {
			gone, done := c.step()
			if !done {
				return
			}
			if steps > 200 {
				t.Fatalf("it does not come to rest")
			}
			for _, e := range gone {
				if made[evicted{e.preemptor, e.victim}] {
					t.Fatalf("%s has made way for %s, and now the other way round", e.preemptor.Key, e.victim.Key)
				}
				made[e] = true
				if v, p := e.victim, e.preemptor; v.of/2 == p.of/2 && v.entry.Of.Rank == p.entry.Of.Rank && v.within && !p.within {
					t.Fatalf("%s is within its reservation, and makes way for %s, which is not", v.Key, p.Key)
				}
			}
		}
	})
}

// Who made way for whom is remembered of pods that are there, as long as nothing else is wanted.
func TestMadeWay(t *testing.T) {
	var m MadeWay
	m.Note(1, "p", "a")
	m.Note(1, "p", "b")
	m.Note(1, "q", "a")
	want := func(when string, stamp uint64, preemptor, victim string, want bool) {
		t.Helper()
		if got := m.For(stamp, preemptor, victim); got != want {
			t.Errorf("%s: %s has made way for %s: %t", when, victim, preemptor, got)
		}
	}
	want("noted", 1, "p", "a", true)
	want("noted", 1, "p", "b", true)
	want("the other way round", 1, "a", "p", false)
	want("with another demand", 2, "p", "a", false)
	m.Note(2, "p", "c")
	want("noted before that", 1, "p", "a", false)
	m.Keep(func(preemptor string) bool { return preemptor != "p" })
	want("gone", 2, "p", "c", false)
	want("still there", 1, "q", "a", true)
}

// A group of pods is a preemptor of several, each of which needs a node.
type group struct {
	*world
	members []*pod
	nodes   map[*pod]string
	asked   int
}

func (g *group) Place() bool {
	g.asked++
	found := make(map[*pod]string)
	for _, p := range g.members {
		g.place(p)
		found[p] = p.node
	}
	for _, p := range g.members {
		p.node = ""
	}
	for _, node := range found {
		if node == "" {
			return false
		}
	}
	g.nodes = found
	return true
}

func (g *group) Fits() bool {
	ok := true
	for _, p := range g.members {
		ok = ok && g.fits(p, g.nodes[p])
		p.node = g.nodes[p]
	}
	for _, p := range g.members {
		p.node = ""
	}
	return ok
}

func (g *group) On(node string) bool {
	for _, p := range g.members {
		if g.nodes[p] == node {
			return true
		}
	}
	return false
}

func TestGroup(t *testing.T) {
	c := one(ten("a", ""), ten("b", ""), ten("c", ""))
	for i, n := range []string{"a", "b", "c"} {
		c.add(fmt.Sprint("large", i), 7, 10-i, n)
		c.add(fmt.Sprint("small", i), 3, 5-i, n)
	}
	first, second := c.add("first", 3, 50, ""), c.add("second", 8, 50, "")
	w, tail := c.worldOf(second, c.order())
	g := &group{world: w, members: []*pod{first, second}}
	plan, ok := WalkGroup(tail, nil, g)
	var gone []string
	for _, i := range plan.Victims {
		gone = append(gone, w.tail[i].Key)
	}
	// All that is small makes room for one; the other takes the node of the last of the large ones.
	if !ok || !slices.Contains(gone, "large2") || slices.Contains(gone, "large1") || slices.Contains(gone, "large0") || len(gone) > 3 {
		t.Errorf("got %v, %t", gone, ok)
	}
	if !g.Fits() {
		t.Error("the group does not fit")
	}
	second.Demand = allocation.Vector{11}
	for i := range w.tail {
		w.Restore(i)
	}
	if plan, ok := WalkGroup(tail, nil, g); ok {
		t.Errorf("a group that fits nowhere has victims: %+v", plan)
	}
	for _, p := range w.tail {
		if p.node == "" {
			t.Errorf("%s was not put back", p.Key)
		}
	}
	if g.asked > 10 {
		t.Errorf("it was placed %d times", g.asked)
	}
}
