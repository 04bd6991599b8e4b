// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// BenchmarkRevisions has revisions of two pods each replace one of them in turn, on a topology
// that all share: what one costs must not depend on how many there are.
func BenchmarkRevisions(b *testing.B) {
	for _, revisions := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("nodes=5000/revisions=%d", revisions), func(b *testing.B) {
			c := newCrowd(5_000, revisions, levelsOf("zone", "rack"), func(n, l int) placement.Value { return placement.Value{Text: fmt.Sprint(n / []int{500, 50}[l])} })
			older := make([]int32, revisions)
			for i := range 2 * revisions {
				older[i%revisions] = c.place(i % revisions)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				revision := i % revisions
				newer := c.place(revision)
				c.count(revision, older[revision], -1)
				older[revision] = newer
			}
		})
	}
}

// BenchmarkDeep builds a topology and places a pod, over a label that is unique per node and levels below it.
func BenchmarkDeep(b *testing.B) {
	for _, levels := range []int{1, 16} {
		b.Run(fmt.Sprintf("nodes=5000/levels=%d", levels), func(b *testing.B) {
			names := make([]string, levels)
			for i := range names {
				names[i] = fmt.Sprint("level-", i)
			}
			value := func(n, l int) placement.Value {
				if l > 0 {
					return placement.Value{Missing: true}
				}
				return placement.Value{Text: fmt.Sprintf("host-%04d", n)}
			}
			c := newCrowd(5_000, 1, levelsOf(names...), value)
			b.ReportAllocs()
			for b.Loop() {
				c.build()
				c.place(0)
			}
		})
	}
}

// crowd is revisions that share all but their tallies.
type crowd struct {
	nodes    *tree.Nodes
	levels   []level.Level
	value    tree.Values
	topology *tree.Topology
	needs    *tree.Feasibility
	tallies  []*tree.Tally
}

func newCrowd(nodes, revisions int, levels []level.Level, value func(node, level int) placement.Value) *crowd {
	c := &crowd{nodes: tree.NewNodes(0), levels: levels, tallies: make([]*tree.Tally, revisions)}
	for i := range nodes {
		c.nodes.Set(fmt.Sprintf("node-%06d", i), tree.Facts{Usage: placementtest.Usage(0)})
	}
	c.value = func(node int32, l int) placement.Value { return value(int(node), l) }
	c.needs = tree.NewFeasibility(c.nodes)
	c.build()
	return c
}

func (c *crowd) build() {
	c.topology = tree.NewTopology(c.nodes, c.levels, c.value)
	for i := range c.tallies {
		c.tallies[i] = tree.NewTally(c.topology)
	}
}

func (c *crowd) place(revision int) (node int32) {
	tally := c.tallies[revision]
	c.topology.Refresh()
	c.needs.Refresh()
	node, _ = tree.View{Topology: c.topology, Feasibility: c.needs, Tally: tally}.Next(func(int32) (bool, int) { return true, 0 })
	c.count(revision, node, +1)
	return node
}

func (c *crowd) count(revision int, node int32, pods int64) {
	of, ofWorkload := c.tallies[revision].Pods(node)
	c.tallies[revision].SetPods(node, of+pods, ofWorkload+pods)
	facts := c.nodes.Facts(node)
	facts.Usage.CPU.Requested += pods
	c.nodes.Set(c.nodes.Name(node), facts)
}

func levelsOf(labels ...string) []level.Level {
	var levels []level.Level
	for _, label := range labels {
		levels = append(levels, level.Level{Strategy: level.Spread, Property: level.Property{Label: label}, NodesWithoutKey: level.OwnDomain})
	}
	return levels
}
