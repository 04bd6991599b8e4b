// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

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
