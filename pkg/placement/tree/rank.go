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
	// Class numbers the classes of equals, 0 for the best: see Rank.
	Class int
}

// Rank returns the nodes that fit, best class first.
//
// Two nodes of a leaf are equals if nothing but their names tells them apart. Two
// branches are equals likewise, and then it is all the same which of them gets
// the pod, as long as it goes to the best place inside: the best class of one and
// the best class of the other are one class, and so on with the second. What lies
// deeper is not compared across branches. A node is in the best class if and only if
// Next might choose it under other names, and Next's own choice comes first.
func (t *Tree) Rank(fit placement.Fits) []Ranked {
	t.settle()
	t.askAll(t.root, fit)
	ranked := make([]Ranked, 0, t.root.open)
	for class, nodes := range t.root.classes() {
		for _, n := range nodes {
			ranked = append(ranked, Ranked{Name: n.Name, Class: class})
		}
	}
	return ranked
}

// classes returns the open nodes below b by class, best first.
func (b *branch) classes() [][]*node {
	if b.isLeaf() {
		return chunks(sortedOpenNodes(b), func(a, b *node) int {
			m, o := a.merits(), b.merits()
			return m.compare(&o)
		})
	}
	var all [][]*node
	for _, equals := range chunks(sortedOpenBranches(b), compareMerits) {
		var merged [][]*node
		for _, c := range equals {
			for i, nodes := range c.classes() {
				if i == len(merged) {
					merged = append(merged, nil)
				}
				merged[i] = append(merged[i], nodes...)
			}
		}
		all = append(all, merged...)
	}
	return all
}

// chunks divides a sorted list where compare tells neighbours apart.
func chunks[T any](sorted []T, compare func(a, b T) int) [][]T {
	var out [][]T
	first := 0
	for i := range sorted {
		if next := i + 1; next == len(sorted) || compare(sorted[i], sorted[next]) != 0 {
			out = append(out, sorted[first:next:next])
			first = next
		}
	}
	return out
}

// sortedOpenBranches returns the children of b that have an open node, best first.
func sortedOpenBranches(b *branch) []*branch {
	open := slices.DeleteFunc(slices.Clone(b.children), func(c *branch) bool { return c.open == 0 })
	slices.SortFunc(open, compareBranches)
	return open
}

// sortedOpenNodes returns the nodes of a leaf that are not refused, best first.
func sortedOpenNodes(b *branch) []*node {
	return slices.DeleteFunc(b.nodes.inOrder(), func(n *node) bool { return n.answer == refused })
}
