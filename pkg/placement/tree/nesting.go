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

// Undecided is a level that decides nothing.
type Undecided struct {
	// Level is its number in the list, from 0.
	Level int
	// Below is the number of an earlier level, finer than it: every value of that lies inside one value of the level. It
	// is -1 where no node has the property.
	Below int
}

// UndecidedLevels returns the levels that decide nothing, in an order that somebody has chosen. A level with one
// value is not among them, or one that divides the nodes as another does: more nodes may change that.
func UndecidedLevels(nodes *Nodes, levels []level.Level, value Values) []Undecided {
	if len(nodes.sorted()) == 0 {
		return nil
	}
	var all []Undecided
	n := nesting{levels, numberValues(nodes, len(levels), value)}
	for l, numbers := range n.numbers {
		switch most := slices.Max(numbers); {
		case most == none:
			all = append(all, Undecided{l, -1})
		case most > 0:
			if above := slices.IndexFunc(n.numbers[:l], func(above []int32) bool { return n.within(above, numbers) && !n.within(numbers, above) }); above >= 0 {
				all = append(all, Undecided{l, above})
			}
		}
	}
	return all
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
	return n.within(n.numbers[b], n.numbers[a]) && !n.within(n.numbers[a], n.numbers[b])
}

// within reports that every value of one level lies inside one value of another.
func (*nesting) within(fine, coarse []int32) bool {
	in := make(map[int32]int32)
	for node, f := range fine {
		c := coarse[node]
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
