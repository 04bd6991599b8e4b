// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// Ranked is a node's position among all that fit.
type Ranked struct {
	Name string
	// Class numbers the classes of equals, 0 for the best. Two nodes are equals if
	// nothing but names tells them apart: neither their own tallies nor those of
	// the branches they hang on.
	Class int
}

// Rank returns the nodes that fit, best first: branch by branch as they stand now,
// all nodes of a branch before those of the next. Next's node comes first.
func (t *Tree) Rank(fit placement.Fits) []Ranked {
	t.askAll(t.root, fit)
	r := ranking{ranked: make([]Ranked, 0, t.root.open), ids: make(map[rankKey]int), classes: make(map[int]int)}
	r.walk(t.root, 0)
	return r.ranked
}

// ranking gives an id to every distinct sequence of keys from the root to a node,
// and numbers the sequences that reach a node in the order of their first node.
type ranking struct {
	ranked  []Ranked
	ids     map[rankKey]int
	classes map[int]int // class by id
}

// rankKey is what orders a branch or node among its siblings, but for its name,
// under the branches that led to it.
type rankKey struct {
	above  int // the id of the parent's sequence
	depth  int // levels still to come: keys of different kinds never meet
	within bool
	sound  bool

	revision, workload ratio
	last               int64 // open nodes of a branch, pods on a node
	failures           int
}

// ratio is a load in lowest terms, so that equal loads are equal keys: 1/2 and 2/4.
type ratio struct{ num, den int64 }

func ratioOf(num, den int64) ratio {
	a, b := num, den
	for b != 0 {
		a, b = b, a%b
	}
	return ratio{num / a, den / a}
}

func (r *ranking) walk(b *branch, above int) {
	if b.isLeaf() {
		for _, n := range sortedOpenNodes(b) {
			id := r.id(n.rankKey(above))
			class, seen := r.classes[id]
			if !seen {
				class = len(r.classes)
				r.classes[id] = class
			}
			r.ranked = append(r.ranked, Ranked{Name: n.Name, Class: class})
		}
		return
	}
	for _, c := range sortedOpenBranches(b) {
		r.walk(c, r.id(c.rankKey(above)))
	}
}

func (r *ranking) id(k rankKey) int {
	id, ok := r.ids[k]
	if !ok {
		id = len(r.ids) + 1
		r.ids[k] = id
	}
	return id
}

func (b *branch) rankKey(above int) rankKey {
	return rankKey{
		above:    above,
		depth:    len(b.parent.below.levels),
		within:   b.parent.below.others,
		sound:    b.healthy > 0,
		revision: ratioOf(b.tally.Revision+1, b.share),
		workload: ratioOf(b.tally.Workload+1, b.share),
		last:     int64(b.open),
	}
}

func (n *node) rankKey(above int) rankKey {
	return rankKey{
		above:    above,
		sound:    !n.Unready,
		revision: ratio{n.Tally.Revision, 1},
		workload: ratio{n.Tally.Workload, 1},
		last:     n.Tally.All,
		failures: n.Failures,
	}
}

// sortedOpenBranches returns the children of b that have an open node, best first.
func sortedOpenBranches(b *branch) []*branch {
	open := slices.DeleteFunc(slices.Clone(b.children), func(c *branch) bool { return c.open == 0 })
	slices.SortFunc(open, compareBranches)
	return open
}

// sortedOpenNodes returns the nodes of a leaf that are not refused, best first.
func sortedOpenNodes(b *branch) []*node {
	open := slices.DeleteFunc(slices.Clone(b.nodes), func(n *node) bool { return n.answer == refused })
	slices.SortFunc(open, compareNodes)
	return open
}
