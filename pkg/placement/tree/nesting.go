// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// ByNesting orders levels whose list has no order of its own, as that of topology spread constraints:
// of two properties where every value of one lies inside one value of the other, the coarser comes
// first; those over host names come last; and only those that do not nest stay as they are listed. It costs
// a look at every node for each two levels.
//
// Nodes that lack one of two properties say nothing of these two. So a rack without a zone does not
// keep zones from coming before racks.
func ByNesting(nodes *Nodes, levels []level.Level, value Values) []level.Level {
	if len(levels) < 2 {
		return levels
	}
	n := nesting{levels, numberValues(nodes, len(levels), value)}
	left := make([]int, len(levels))
	for i := range left {
		left[i] = i
	}
	ordered := make([]level.Level, 0, len(levels))
	for len(left) > 0 {
		// Where labels are missing, three levels may nest in a circle: then the list says which is first.
		next := max(0, slices.IndexFunc(left, func(i int) bool {
			return !slices.ContainsFunc(left, func(above int) bool { return n.comesBefore(above, i) })
		}))
		ordered = append(ordered, levels[left[next]])
		left = slices.Delete(left, next, next+1)
	}
	return ordered
}

// nesting is the values of all nodes at some levels, as numbers.
type nesting struct {
	levels  []level.Level
	numbers [][]int32 // by level and node; none where the node lacks the property
}

func numberValues(nodes *Nodes, levels int, value Values) [][]int32 {
	numbers := make([][]int32, levels)
	for l := range numbers {
		known := make(map[string]int32)
		for _, node := range nodes.sorted() {
			v := value(node, l)
			number := none
			if !v.Missing {
				var ok bool
				if number, ok = known[v.Text]; !ok {
					number = int32(len(known))
					known[v.Text] = number
				}
			}
			numbers[l] = append(numbers[l], number)
		}
	}
	return numbers
}

// comesBefore reports that one level must come before another, whatever the list says.
func (n *nesting) comesBefore(a, b int) bool {
	if aHost, bHost := n.levels[a].Property.IsHost(), n.levels[b].Property.IsHost(); aHost || bHost {
		return bHost && !aHost
	}
	return n.inside(b, a) && !n.inside(a, b)
}

// inside reports that every value of one level lies inside one value of another.
func (n *nesting) inside(fine, coarse int) bool {
	in := make(map[int32]int32)
	for node, f := range n.numbers[fine] {
		c := n.numbers[coarse][node]
		if f == none || c == none {
			continue
		}
		if seen, ok := in[f]; ok && seen != c {
			return false
		}
		in[f] = c
	}
	return true
}
