// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nesting finds out how the levels of a list nest in one cluster, such as whether every rack is in one zone.
// It orders the levels of a list whose order has no meaning, and finds the levels that have no effect.
package nesting

import (
	"fmt"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Nesting is some levels, and the values that the nodes of a cluster have at them.
type Nesting struct {
	levels []level.Level
	values []values // by level
}

// values are those of all nodes at one level, as numbers from 0.
type values struct {
	of    []int32 // by node; missing where it lacks the property
	count int32
}

const missing int32 = -1

// New looks at the value of each node at each level, once.
func New(levels []level.Level, nodes []int32, value func(node int32, level int) placement.Value) *Nesting {
	n := &Nesting{slices.Clone(levels), make([]values, len(levels))}
	for l := range n.values {
		known := make(map[string]int32)
		of := make([]int32, len(nodes))
		for i, node := range nodes {
			v := value(node, l)
			number, ok := known[v.Text]
			switch {
			case v.Missing:
				number = missing
			case !ok:
				number = int32(len(known))
				known[v.Text] = number
			}
			of[i] = number
		}
		n.values[l] = values{of, int32(len(known))}
	}
	return n
}

// Levels returns the levels in their order.
func (n *Nesting) Levels() []level.Level { return n.levels }

// Sort orders the levels of a list whose order has no meaning, such as that of topology spread constraints. If every
// value of one property lies inside one value of another, and not the other way round, the level over the other
// property comes first. Levels over host names come last. Where several levels may come next, the first of them in the
// list does. Sort looks at every node for each pair of levels.
//
// A node that lacks one of two properties is ignored when these two are compared. So racks whose nodes have no zone do
// not keep zones from coming before racks.
func (n *Nesting) Sort() {
	before := n.pairs(func(a, b int) bool { // a must come before b, whatever the list says
		if aHost, bHost := n.levels[a].Property.IsHost(), n.levels[b].Property.IsHost(); aHost || bHost {
			return bHost && !aHost
		}
		return n.within(b, a, saysNothing) && !n.within(a, b, saysNothing)
	})
	left := make([]int, len(n.levels))
	for i := range left {
		left[i] = i
	}
	ordered := Nesting{make([]level.Level, 0, len(left)), make([]values, 0, len(left))}
	for len(left) > 0 {
		// Where labels are missing, three levels may nest in a circle: then the list says which is first.
		next := max(0, slices.IndexFunc(left, func(i int) bool {
			return !slices.ContainsFunc(left, func(above int) bool { return before[above][i] })
		}))
		ordered.levels = append(ordered.levels, n.levels[left[next]])
		ordered.values = append(ordered.values, n.values[left[next]])
		left = slices.Delete(left, next, next+1)
	}
	*n = ordered
}

// Undecided returns one sentence for each level that has no effect at its place in the list. A level has no effect if
// no node has its label, or if each value of an earlier level lies inside one value of this level. Levels with a single
// value are not reported, nor are levels that divide the nodes exactly as another does: more nodes may change that.
//
// The nodes without the property of a level count as one more value of it. If the level excludes them, they are ignored.
func (n *Nesting) Undecided() []string {
	var all []string
	for l, v := range n.values {
		switch {
		case len(v.of) == 0: // no nodes, of which nothing can be said
		case v.count == 0:
			all = append(all, fmt.Sprintf("The level over %q decides nothing: no node has this label.", n.levels[l].Property))
		case v.count > 1:
			for above := range l {
				// Every value of the one above lies inside one value of this.
				if n.within(above, l, isOneMore) && !n.within(l, above, isOneMore) {
					all = append(all, fmt.Sprintf("The level over %q decides nothing below the level over %q, which is finer: name %q first.",
						n.levels[l].Property, n.levels[above].Property, n.levels[l].Property))
					break
				}
			}
		}
	}
	return all
}

// pairs is what is true of each two levels.
func (n *Nesting) pairs(is func(a, b int) bool) [][]bool {
	all := make([][]bool, len(n.levels))
	for a := range all {
		all[a] = make([]bool, len(n.levels))
		for b := range all[a] {
			all[a][b] = a != b && is(a, b)
		}
	}
	return all
}

// whereMissing says how to count the nodes that lack a property. With saysNothing, they are ignored.
type whereMissing bool

const (
	saysNothing whereMissing = false
	// isOneMore: those that lack it are one more value, unless the level excludes them.
	isOneMore whereMissing = true
)

// within reports that every value of one level lies inside one value of another.
func (n *Nesting) within(fine, coarse int, lacking whereMissing) bool {
	const unseen int32 = -2
	in := make([]int32, n.values[fine].count+1) // the last of them is for nodes that lack it
	for i := range in {
		in[i] = unseen
	}
	skips := func(l int) bool {
		return lacking == saysNothing || n.levels[l].NodesWithoutKey == level.Exclude
	}
	skipFine, skipCoarse := skips(fine), skips(coarse)
	for node, f := range n.values[fine].of {
		c := n.values[coarse].of[node]
		if f == missing && skipFine || c == missing && skipCoarse {
			continue
		}
		if f == missing {
			f = n.values[fine].count
		}
		if in[f] != unseen && in[f] != c {
			return false
		}
		in[f] = c
	}
	return true
}
