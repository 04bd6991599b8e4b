// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

func wantNodes(t *testing.T, c *cluster, want map[string]string) {
	t.Helper()
	for name, node := range want {
		if got := c.pod(name).node; got != node {
			t.Errorf("%s is on %q, want %q", name, got, node)
		}
	}
}

func ten(name, domain string) node {
	return node{name: name, domain: domain, capacity: allocation.Vector{10}}
}

func TestVector_TV12_FromTheEnd(t *testing.T) {
	c := one(ten("a", "left"), ten("b", "left"), ten("y", "right"), ten("z", "right"))
	for i, node := range []string{"a", "y", "b", "z"} {
		c.add(fmt.Sprint("app", i+1), int64(i+1), 4-i, node)
	}
	c.add("prio50", 10, 50, "")
	c.settle()
	wantNodes(t, c, map[string]string{"prio50": "z", "app4": "a", "app1": "a", "app2": "y", "app3": "b"})

	c.add("prio51", 10, 51, "")
	gone := c.settle()
	wantNodes(t, c, map[string]string{"prio51": "b", "app4": "a", "app3": "y", "prio50": "z"})
	if len(gone) != 1 || gone[0].victim.Key != "app3" {
		t.Errorf("%d were evicted, of which app3 alone had to go", len(gone))
	}

	c.add("first49", 10, 49, "")
	c.add("second49", 9, 49, "")
	c.settle()
	wantNodes(t, c, map[string]string{
		"first49": "y", "second49": "a", "prio50": "z", "prio51": "b", "app1": "a", "app2": "", "app3": "", "app4": "",
	})
}

func TestVector_TV13_NetVictims(t *testing.T) {
	var nodes []node
	for i := range 10 {
		nodes = append(nodes, ten(fmt.Sprint("n", i), ""))
	}
	c := one(nodes...)
	for i := range 10 {
		c.add(fmt.Sprint("small", i), 1, 50, fmt.Sprint("n", i))
		c.add(fmt.Sprint("large", i), 8, 60, fmt.Sprint("n", i))
	}
	medium := c.add("medium", 5, 70, "")
	w, plan, ok := c.walk(medium, c.order())
	if !ok || len(plan.Victims) != 1 || w.tail[plan.Victims[0]].Demand[0] != 8 {
		t.Fatalf("got %+v, %t, want one large victim", plan, ok)
	}
	// Ten small ones and the large one, which was tried to be put back.
	if c.removed != 12 {
		t.Errorf("%d pods were taken off their nodes, want 12", c.removed)
	}
	running := 0
	for _, p := range c.pods {
		if p.node != "" && p.Demand[0] == 1 {
			running++
		}
	}
	if running != 10 {
		t.Errorf("%d small ones are running", running)
	}
}

func TestVector_TV14_RetainedPodsStay(t *testing.T) {
	large, small := ten("large", ""), node{name: "small", capacity: allocation.Vector{3}}
	large.down = true
	c := one(large, small)
	c.add("a1", 4, 100, "")
	c.add("a2", 4, 1, "large")
	if gone := c.settle(); len(gone) != 0 {
		t.Errorf("%d were evicted", len(gone))
	}
	wantNodes(t, c, map[string]string{"a1": "", "a2": "large"})
}

func TestVector_TV24_FailedDemands(t *testing.T) {
	var f Failed
	f.Note("affinity", []int64{2, 2, 2}, 7)
	for _, tc := range []struct {
		kind     string
		demand   []int64
		position int
		want     bool
	}{
		{"affinity", []int64{2, 2, 2}, 7, true},
		{"affinity", []int64{3, 3, 3}, 7, true},
		{"affinity", []int64{1, 1, 1}, 7, false},
		{"other", []int64{5, 5, 5}, 7, false},
		{"affinity", []int64{3, 1, 3}, 7, false},
		{"affinity", []int64{3, 3}, 7, false},
		{"affinity", []int64{3, 3, 3}, 8, true},
		// It has a pod more that may make way for it.
		{"affinity", []int64{3, 3, 3}, 6, false},
	} {
		if got := f.Hopeless(tc.kind, tc.demand, tc.position); got != tc.want {
			t.Errorf("%s %v at %d is hopeless: %t", tc.kind, tc.demand, tc.position, got)
		}
	}
	f.Clear()
	if f.Hopeless("affinity", []int64{2, 2, 2}, 7) {
		t.Error("it is remembered after all was forgotten")
	}
}

// A limit of a domain is in the way on a node from which nobody has to go.
func TestLimitOfADomainHolds(t *testing.T) {
	c := one(ten("a", "left"), ten("b", "left"))
	c.limit = 1
	c.add("limited", 1, 1, "a").limited = true
	c.add("guard", 9, 90, "a") // comes before the preemptor
	c.add("other", 5, 2, "a")
	c.nodes[0].capacity = allocation.Vector{15}
	c.add("new", 5, 50, "").limited = true
	if gone := c.settle(); len(gone) != 1 || gone[0].victim.Key != "limited" {
		t.Fatalf("%d were evicted, want the limited one", len(gone))
	}
	wantNodes(t, c, map[string]string{"new": "b", "other": "a", "guard": "a"})
}

// However many nodes are full, the one is found that is not, and from which somebody far away keeps the preemptor: also if nobody says that he is.
func TestTheLastOfVeryManyNodes(t *testing.T) {
	for _, far := range []bool{true, false} {
		c := one()
		c.limit = 1
		for i := range 2 * maxOthers {
			name := fmt.Sprint("n", i)
			c.nodes = append(c.nodes, ten(name, "left"))
			c.add("guard"+name, 6, 90, name) // comes before the preemptor
		}
		c.nodes = append(c.nodes, ten("last", "left"))
		c.add("late", 1, 1, "n1")
		c.add("limited", 1, 2, "n0").limited = true
		p := c.add("new", 5, 50, "")
		p.limited = true
		w, tail := c.worldOf(p, c.order())
		var others []string
		for i := range tail {
			tail[i].Far = tail[i].Far && far
		}
		for _, n := range c.nodes {
			others = append(others, n.name)
		}
		if plan, ok := Walk(tail, others, nil, w); !ok || plan.Node != "last" || len(plan.Victims) != 1 || w.tail[plan.Victims[0]].Key != "limited" {
			t.Errorf("far %t: got %+v, %t", far, plan, ok)
		}
	}
}

// However many pods may be in the way on all nodes, it is soon known that nobody makes way.
func TestTriesAreBounded(t *testing.T) {
	c := one()
	c.limit = 1
	for i := range 200 {
		name := fmt.Sprint("n", i)
		c.nodes = append(c.nodes, ten(name, "left"))
		c.add("limited"+name, 1, 1, name).limited = true
	}
	c.add("guard", 1, 90, "n0").limited = true // comes before the preemptor, and keeps it off all nodes
	p := c.add("new", 1, 50, "")
	p.limited = true
	if _, plan, ok := c.walk(p, c.order()); ok {
		t.Errorf("got %+v", plan)
	}
	if c.asked > 2*maxTries {
		t.Errorf("it was looked %d times whether it fits", c.asked)
	}
}

// A budget that lets nobody go is kept where somebody else can make way, and not where nobody can.
func TestBudgets(t *testing.T) {
	for name, tc := range map[string]struct {
		bound []int
		want  string
	}{
		"the last is bound":   {[]int{1}, "first"},
		"the first is bound":  {[]int{0}, "second"},
		"both are bound":      {[]int{0, 1}, "second"},
		"none of the two are": {nil, "second"},
	} {
		c := one(ten("a", ""), ten("b", ""))
		c.allowed = []int{0}
		pods := []*pod{c.add("first", 10, 5, "a"), c.add("second", 10, 4, "b")}
		for _, i := range tc.bound {
			pods[i].budgets = []int{0}
		}
		w, plan, ok := c.walk(c.add("new", 10, 50, ""), c.order())
		if !ok || len(plan.Victims) != 1 || w.tail[plan.Victims[0]].Key != tc.want || plan.Violations == 1 != (len(tc.bound) == 2) {
			t.Errorf("%s: got %+v, %t, want %s", name, plan, ok, tc.want)
		}
	}
}

// teams is the cluster of docs/tenants.md: 100 CPUs on ten nodes, shared by the three teams.
func teams() *cluster {
	var nodes []node
	for i := range 10 {
		nodes = append(nodes, ten(fmt.Sprint("n", i), ""))
	}
	return &cluster{nodes: nodes, tree: func() (*allocation.Allocation, []*allocation.Allocation) {
		its := []*allocation.Allocation{
			{Name: "prod", Reserved: allocation.Vector{40}, Rank: allocation.DefaultRank, Adjustment: 3},
			{Name: "test", Reserved: allocation.Vector{20}, Rank: allocation.DefaultRank, Adjustment: 1},
			{Name: "dev", Reserved: allocation.Vector{10}, Rank: allocation.DefaultRank},
		}
		return &allocation.Allocation{Children: its}, its
	}}
}

const (
	prod = iota
	test
	dev
)

// starts has a team start pods of two CPUs each, that many in all.
func (c *cluster) starts(team int, cpus int64) {
	for range cpus / 2 {
		c.add(fmt.Sprint("p", len(c.pods)), 2, 1, "").of = team
	}
}

// use is how many CPUs each team uses.
func (c *cluster) use() (cpus [3]int64) {
	for _, p := range c.pods {
		if p.node != "" {
			cpus[p.of] += p.Demand[0]
		}
	}
	return cpus
}

// What the table of docs/tenants.md says happens, happens.
func TestThreeTeamsOfThePage(t *testing.T) {
	c := teams()
	want := func(when string, gone []evicted, who int, n int, use [3]int64) {
		t.Helper()
		if got := c.use(); got != use {
			t.Errorf("%s: the teams use %v CPUs, want %v", when, got, use)
		}
		if len(gone) != n || slices.ContainsFunc(gone, func(e evicted) bool { return e.victim.of != who }) {
			t.Errorf("%s: %d pods leave, want %d, all of team %d", when, len(gone), n, who)
		}
	}
	c.starts(dev, 60)
	want("dev alone", c.settle(), dev, 0, [3]int64{0, 0, 60})
	c.starts(prod, 40)
	want("prod starts", c.settle(), dev, 0, [3]int64{40, 0, 60})
	c.starts(test, 20)
	want("test starts", c.settle(), dev, 10, [3]int64{40, 20, 40})

	for i := range 4 {
		c.nodes[i].down = true
	}
	for _, p := range c.pods {
		if p.node != "" && slices.ContainsFunc(c.nodes, func(n node) bool { return n.down && n.name == p.node }) {
			p.node = ""
			c.now(p)
		}
	}
	c.settle()
	want("nodes with 40 CPUs die", nil, dev, 0, [3]int64{40, 20, 0})

	for i := range c.nodes {
		c.nodes[i].down = false
	}
	c.settle()
	c.starts(prod, 50)
	c.settle()
	got := c.use()
	if got[prod]+got[test]+got[dev] != 100 || got[test] != 20 || got[prod] <= 44 || got[dev] <= 14 {
		t.Errorf("prod starts more: the teams use %v CPUs; prod and dev are to share what is beyond", got)
	}
}
