// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"slices"
	"sort"
)

// Group is the world of a preemptor that is several pods which are placed together.
type Group interface {
	World
	// Place looks for a node for each pod of the group, and reports whether there are enough. If not, those of the last time stand.
	Place() bool
	// Fits reports whether the pods of the group still fit on the nodes that Place has found.
	Fits() bool
	// On reports whether one of these nodes is this one.
	On(node string) bool
}

// WalkGroup finds the victims for a group, as Walk does for a pod. The group is placed where it fits when as few pods as possible are
// taken away from the end of the order.
//
// Place is called about as often as the number of pods has digits in base two. So it is taken for granted that a group which fits
// still fits if more pods go. Where that does not hold, fewer pods might have done.
func WalkGroup(tail []Pod, allowed []int, world Group) (Plan, bool) {
	w := newWalk(tail, allowed, world)
	return w.keepingBudgets(func() (Plan, bool) {
		for i := range slices.Backward(tail) {
			w.remove(i)
		}
		if len(w.removed) == 0 || !world.Place() {
			return Plan{}, false
		}
		w.fewest(world)
		plan := w.putBack(world.Fits, func(i int) bool { return world.On(tail[i].Node) })
		if w.sparing && plan.Violations > 0 {
			w.undo(plan)
			return Plan{}, false
		}
		return plan, true
	})
}

// fewest puts back all pods but the fewest from the end without which the group can be placed. It was placed last without all.
func (w *walk) fewest(world Group) {
	all := w.removed
	off := len(all) // so many of them are off their nodes
	set := func(n int) {
		for ; off > n; off-- {
			world.Restore(all[off-1])
		}
		for ; off < n; off++ {
			world.Remove(all[off])
		}
	}
	set(1 + sort.Search(len(all)-1, func(i int) bool {
		set(i + 1)
		return world.Place()
	}))
	w.removed = all[:off]
}
