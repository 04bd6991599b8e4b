// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
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
		{Strategy: level.Spread, Property: level.Property{Label: "zone"}, Missing: level.Include},
		{Strategy: level.Spread, Property: level.Property{Label: "rack"}, Missing: level.Include},
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
