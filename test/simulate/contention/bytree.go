// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"fmt"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/ownership"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// scheduler is one of several.
type scheduler interface {
	// candidates are the nodes for a pod, the best first, at most as many as are to be had.
	candidates(now int64) []int
	// sees has it see that there are so many pods more on a node, or less.
	sees(node int, more int64)
}

// byTree has a tree over all nodes, as it has seen them, with what it has decided itself.
type byTree struct {
	slots, most int64
	used        []int64 // by node
	nodes       *tree.Nodes
	view        tree.View
	ours        []int   // the number of a node by the tree's
	trees       []int32 // and the other way
}

func nodeName(node int) string { return fmt.Sprintf("node-%06d", node) }

// newByTree is one that has seen everything as it is.
func newByTree(id int, c Config, used []int64) *byTree {
	b := &byTree{
		slots: int64(c.Slots), most: int64(c.Candidates), used: slices.Clone(used), nodes: tree.NewNodes(c.Nodes),
		ours: make([]int, c.Nodes), trees: make([]int32, c.Nodes),
	}
	if c.Ties == ByHash {
		b.nodes.Weight = ownership.Weights(fmt.Sprint("replica-", id))
	}
	for node := range c.Nodes {
		at := b.nodes.Set(nodeName(node), b.facts(node))
		b.ours[at], b.trees[node] = node, at
	}
	topology := tree.NewTopology(b.nodes, nil, nil)
	// Each pod is of another workload, so that no node has any of its own, and the load decides.
	b.view = tree.View{Topology: topology, Feasibility: tree.NewFeasibility(b.nodes), Tally: tree.NewTally(topology)}
	return b
}

func (b *byTree) facts(node int) tree.Facts {
	return tree.Facts{Usage: placement.Usage{CPU: placement.Amount{Requested: b.used[node], Allocatable: b.slots}}}
}

func (b *byTree) sees(node int, more int64) {
	b.used[node] += more
	b.nodes.Set(nodeName(node), b.facts(node))
}

// candidates asks the tree for the best node, and then for the best of the others.
func (b *byTree) candidates(int64) []int {
	b.view.Topology.Refresh()
	b.view.Feasibility.Refresh()
	var best []int
	for int64(len(best)) < b.most {
		at, ok := b.view.Next(func(at int32) (bool, int) { return b.used[b.ours[at]] < b.slots, 0 })
		if !ok {
			break
		}
		best = append(best, b.ours[at])
		b.view.Feasibility.Refuse(at, 0)
	}
	for _, node := range best {
		b.view.Feasibility.Allow(b.trees[node])
	}
	return best
}
