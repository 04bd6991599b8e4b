// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
)

// bySample remembers nothing, and asks the agent for a sample for each pod.
type bySample struct {
	most    int
	agent   *Agent
	sampler *sampling.Sampler
	groups  []*sampling.Group
	index   map[string]int
}

// newBySample is one whose groups and turns are all schedulers', as those of an agent are.
func newBySample(c Config, agent *Agent, random *rand.Rand) *bySample {
	b := &bySample{
		most: c.Candidates, agent: agent, groups: make([]*sampling.Group, c.Groups), index: make(map[string]int, c.Nodes),
		sampler: &sampling.Sampler{Groups: c.SampledGroups, Nodes: c.SampledNodes, Strategy: c.Strategy, Intn: random.IntN},
	}
	for g := range b.groups {
		b.groups[g] = &sampling.Group{}
	}
	for node := range c.Nodes {
		name, g := nodeName(node), b.groups[node%c.Groups]
		b.index[name] = node
		g.Nodes = append(g.Nodes, name)
	}
	return b
}

func (b *bySample) sees(int, int64) {}

// scored is a node of a sample.
type scored struct {
	node  int
	score int64
}

// candidates scores the nodes of a sample as Vela does: where they are sampled by how little of them is in use, and where they
// are decided about by how long no pod has come there. Those that tie stay in the order in which they were drawn.
func (b *bySample) candidates(now int64) []int {
	drawn := b.sampler.Sample(b.groups, func(name string) bool { return b.agent.Available(b.index[name]) > 0 }, func() bool { return true })
	nodes, last := make([]scored, len(drawn)), make([]int64, len(drawn))
	for i, name := range drawn {
		nodes[i].node = b.index[name]
		last[i] = b.agent.last[nodes[i].node]
	}
	unused := LeastRecentlyUsed(now, last)
	for i, n := range nodes {
		free := Amount{Total: b.agent.capacity[n.node], Available: b.agent.Available(n.node)}
		nodes[i].score = Combine(LeastAllocated(free), 1, unused[i])
	}
	slices.SortStableFunc(nodes, func(x, y scored) int { return cmp.Compare(y.score, x.score) })
	var best []int
	for _, n := range nodes[:min(len(nodes), b.most)] {
		best = append(best, n.node)
	}
	return best
}
