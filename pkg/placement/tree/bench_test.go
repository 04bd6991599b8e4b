// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// BenchmarkPlace builds a tree and places a batch: the cost is per placement.
func BenchmarkPlace(b *testing.B) {
	for _, size := range []struct{ nodes, pods int }{{1_000, 1_000}, {1_000, 10_000}, {10_000, 10_000}, {100_000, 1_000}} {
		for _, levels := range []int{0, 2} {
			b.Run(fmt.Sprintf("nodes=%d/pods=%d/levels=%d", size.nodes, size.pods, levels), func(b *testing.B) {
				nodes := bigCluster(size.nodes, levels)
				b.ReportAllocs()
				for b.Loop() {
					plant(levels, nodes).Place(size.pods, func(string) bool { return true })
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size.pods), "ns/placement")
			})
		}
	}
}

// BenchmarkLive places one pod after another on a tree that is already there.
func BenchmarkLive(b *testing.B) {
	for _, nodes := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d/levels=2", nodes), func(b *testing.B) {
			t := plant(2, bigCluster(nodes, 2))
			fits := func(string) bool { return true }
			t.Place(1, fits)
			b.ReportAllocs()
			for b.Loop() {
				t.Place(1, fits)
			}
		})
	}
}

// BenchmarkBuild has a tree that knows all nodes and has placed a pod.
func BenchmarkBuild(b *testing.B) {
	nodes := bigCluster(5_000, 2)
	for b.Loop() {
		plant(2, nodes).Next(func(string) bool { return true })
	}
}

// BenchmarkRank ranks all nodes, as the score path does for every pod.
func BenchmarkRank(b *testing.B) {
	for _, nodes := range []int{1_000, 5_000} {
		b.Run(fmt.Sprintf("nodes=%d/levels=2", nodes), func(b *testing.B) {
			t := plant(2, bigCluster(nodes, 2))
			b.ReportAllocs()
			for b.Loop() {
				t.RecheckAll()
				t.Rank(func(string) bool { return true })
			}
		})
	}
}

func plant(levels int, nodes []placement.Node) *simulation.Tree {
	t := empty(levels)
	for _, n := range nodes {
		t.Set(n)
	}
	return t
}

func empty(levels int) *simulation.Tree {
	all := []level.Level{
		{Strategy: level.Spread, Property: level.Property{Label: "zone"}, NodesWithoutKey: level.OwnDomain},
		{Strategy: level.Spread, Property: level.Property{Label: "rack"}, NodesWithoutKey: level.OwnDomain},
	}
	return simulation.New(all[:levels])
}

// bigCluster has 10 zones of 10 racks.
func bigCluster(nodes, levels int) []placement.Node {
	all := make([]placement.Node, nodes)
	for i := range all {
		values := []placement.Value{{Text: fmt.Sprint("zone-", i%10)}, {Text: fmt.Sprint("rack-", i/10%10)}}
		all[i] = placement.Node{Name: fmt.Sprintf("node-%06d", i), Values: values[:levels]}
	}
	return all
}

// BenchmarkRevisions has revisions of two pods each replace one of them in turn, on a topology
// that all share: what one costs must not depend on how many there are.
func BenchmarkRevisions(b *testing.B) {
	for _, revisions := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("nodes=5000/revisions=%d", revisions), func(b *testing.B) {
			c := newCrowd(5_000, revisions, levelsOf("zone", "rack"), func(n, l int) placement.Value {
				return placement.Value{Text: fmt.Sprint(n / []int{500, 50}[l])}
			})
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

// BenchmarkDeep builds a topology and places a pod, over a label that is unique per node
// and levels below it.
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
