// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Turn is which of a workload's pods one is, where they are removed by number, the highest first. Such a pod goes to the branch
// of the first level whose turn it is, so that whatever is left is even, in whatever order the pods came. Where that branch has its
// part already, because pods went elsewhere while another one was closed, it goes to the lowest, as the pods without a turn do: it is
// nil for these.
type Turn struct {
	// Pod is the number of the pod, from 0.
	Pod int32
	// Beside is a node with the pod of the lowest number that runs, and BesidePod that number. It is negative where
	// none runs: among equal branches the first pod may go anywhere.
	Beside, BesidePod int32
	// Last is the highest number of those that run, negative where none runs.
	Last int32
}

// maxTurns bounds the branches that take turns. Each of them is asked for a node before one pod is placed; more of them than a
// StatefulSet has pods, as racks may be, are even without an order.
const maxTurns = 64

// inTurn is the slot of the branch of the first level whose turn it is, of those that may take the pod. It is none where
// there is no order: without a turn, a first level that spreads and has few branches other than nodes, or another pod to count from; and
// where the branch has as many pods as it is to have of all there are up to the last one.
func (v View) inTurn(may func(slot int32) bool) int32 {
	root := &v.Topology.groups[0]
	if v.Turn == nil || root.leaf || root.level != 0 || v.Topology.packs(root) || v.Topology.ofNodes(root) || len(root.members) > maxTurns {
		return none
	}
	var slots []int32
	all := max(v.Turn.Pod, v.Turn.Last) + 1 // of the pods, less those elsewhere
	for slot := range int32(len(root.members)) {
		if root.share(slot) > 0 && may(slot) {
			slots = append(slots, slot)
		} else {
			all -= v.sums(root.members[slot]).revision
		}
	}
	var is, part int32
	switch {
	case len(slots) == 0:
		return none
	case root.shares != nil && (v.Topology.levels[0].Share == level.Allocatable || len(v.Topology.levels[0].Weights) > 0):
		_, is = root.byShares(slots, v.Turn.Pod)
		parts, _ := root.byShares(slots, all)
		part = parts[is]
	case v.Turn.Beside < 0, !v.Topology.Has(v.Turn.Beside):
		return none
	default:
		from, _ := slices.BinarySearch(slots, v.Topology.first(v.Turn.Beside))
		n := int32(len(slots))
		is = (int32(from) + (v.Turn.Pod-v.Turn.BesidePod)%n + n) % n
		begin := min(v.Turn.Pod, v.Turn.BesidePod) // of the pods, there may be none before
		part = (all - begin) / n
		if (v.Turn.Pod-begin)%n < (all-begin)%n {
			part++
		}
	}
	if slot := slots[is]; v.sums(root.members[slot]).revision < part {
		return slot
	}
	return none
}

// byShares is how many of so many pods each branch gets by shares alone, and which one gets the pod that comes next.
func (g *group) byShares(slots []int32, all int32) (pods []int32, next int32) {
	pods = make([]int32, len(slots))
	for {
		next = 0
		for i := range slots {
			if comparePods(pods[i], g.share(slots[i]), pods[next], g.share(slots[next]), false) < 0 {
				next = int32(i)
			}
		}
		if all <= 0 {
			return pods, next
		}
		pods[next]++
		all--
	}
}

// first is the slot in the first group of the branch that a node is in.
func (t *Topology) first(node int32) int32 {
	at := t.where[node]
	for t.groups[at.group].parent != none {
		at = place{t.groups[at.group].parent, t.groups[at.group].slot}
	}
	return at.slot
}

// nextInTurn decides a pod that has a turn. The filters are asked about each branch first: one that takes no pod has no place in the
// order, and where it were counted for some pods and not for others, two would have the same turn.
func (v View) nextInTurn(m *mask, fit Fit) (int32, bool) {
	if v.Turn == nil {
		return none, false
	}
	root := &v.Topology.groups[0]
	best := make(map[int32]int32)
	slot := v.inTurn(func(slot int32) bool {
		if m.of(root)[slot/64]&(1<<(slot%64)) == 0 || v.health(m, root.members[slot]).noneHealthy() {
			return false
		}
		node, ok := v.nextBelow(m, root.members[slot], fit)
		best[slot] = node
		return ok && !v.health(m, root.members[slot]).noneHealthy() // the filters may have refused all that are healthy
	})
	if slot == none {
		return none, false
	}
	return best[slot], true
}

// rankInTurn puts the classes of the branch whose turn it is before all others.
func (s *survey) rankInTurn(classes [][]int32, byLoad bool) [][]int32 {
	root := &s.Topology.groups[0]
	slot := s.inTurn(func(slot int32) bool {
		below := s.of(root.members[slot])
		return below.open > 0 && !s.member(root, slot).health.noneHealthy()
	})
	if slot == none {
		return classes
	}
	first := [][]int32{{root.members[slot]}}
	if member := root.members[slot]; member < 0 {
		first = s.classes(^member, byLoad)
	}
	for _, class := range classes {
		others := slices.DeleteFunc(slices.Clone(class), func(node int32) bool { return s.Topology.first(node) == slot })
		if len(others) > 0 {
			first = append(first, others)
		}
	}
	return first
}
