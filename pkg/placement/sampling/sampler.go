// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"iter"
	"slices"
)

// maxRounds bounds the draws from one group. Where few nodes fit, a sample is small rather than late.
const maxRounds = 5

// Group is nodes that are drawn from together, and where its turn is. It is used by one Sampler.
type Group struct {
	Nodes []string
	next  int
}

// Sampler draws samples. All pods share one, or else those that come one after another would be shown the same
// nodes. It is not safe for concurrent use.
type Sampler struct {
	// Groups is the share of groups, and Nodes that of the nodes of each of these. Both must be valid.
	Groups, Nodes BasisPoints
	// Strategy is RoundRobin or Random, which is the default.
	Strategy Strategy
	// Intn returns a random number from 0 to n-1.
	Intn func(n int) int

	next int // which group's turn it is
}

// Sample returns nodes that fit, of some of the groups: as many of each as its share, unless they are not found in a few
// draws, or more says that time is up. It is empty if none was found, which does not say that there is none.
func (s *Sampler) Sample(groups []*Group, fits func(node string) bool, more func() bool) []string {
	var sample []string
	for i := range s.draw(&s.next, len(groups), s.Groups.OfGroups(len(groups))) {
		if !more() {
			break
		}
		g := groups[i]
		n := len(g.Nodes)
		found := search(n, s.Nodes.OfNodes(n), func(size int) iter.Seq[int] { return s.draw(&g.next, n, size) },
			func(at int) bool { return fits(g.Nodes[at]) }, more)
		for _, at := range found {
			sample = append(sample, g.Nodes[at])
		}
	}
	return sample
}

func (s *Sampler) draw(cursor *int, n, size int) iter.Seq[int] {
	if s.Strategy == RoundRobin {
		return inTurn(cursor, n, size)
	}
	return slices.Values(atRandom(s.Intn, n, size))
}

// search draws until as many of n fit as are wanted, or time is up. Each draw is of as many as are missing; one that was drawn
// before is not asked about again (vector VV4).
func search(n, want int, draw func(size int) iter.Seq[int], fits func(at int) bool, more func() bool) (found []int) {
	asked := make(map[int]bool, want)
	for round := 0; round < maxRounds && len(found) < want && len(asked) < n; round++ {
		for at := range draw(want - len(found)) {
			if asked[at] {
				continue
			}
			// Not by the draw: that may be of all nodes, and each of them is filtered.
			if !more() {
				return found
			}
			if asked[at] = true; fits(at) {
				found = append(found, at)
			}
		}
	}
	return found
}
