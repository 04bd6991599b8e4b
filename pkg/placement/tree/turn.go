// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Turn is which of a workload's pods one is, where they are removed by number, the highest first. Such a pod goes to the branch
// of the first level whose turn it is, so that whatever is left is even, in whatever order the pods came. It is nil for other
// pods, which go to the lowest branch.
type Turn struct {
	// Pod is the number of the pod, from 0.
	Pod int32
	// Beside is a node with the pod of the lowest number that runs, and BesidePod that number. It is negative where
	// none runs: among equal branches the first pod may go anywhere.
	Beside, BesidePod int32
}

// maxTurns bounds the branches that take turns. Each of them is asked for a node before one pod is placed; more of them than a
// StatefulSet has pods, as racks may be, are even without an order.
const maxTurns = 64

// inTurn is the slot of the branch of the first level whose turn it is, of those that may take the pod. It is none where
// there is no order: without a turn, a first level that spreads and has few branches other than nodes, or another pod to count from.
func (v View) inTurn(may func(slot int32) bool) int32 {
	root := &v.Topology.groups[0]
	if v.Turn == nil || root.leaf || root.level != 0 || v.Topology.packs(root) || v.Topology.ofNodes(root) || len(root.members) > maxTurns {
		return none
	}
	var slots []int32
	for slot := range root.members {
		if root.share(int32(slot)) > 0 && may(int32(slot)) {
			slots = append(slots, int32(slot))
		}
	}
	switch {
	case len(slots) == 0:
		return none
	case root.shares != nil && (v.Topology.levels[0].Share == level.Allocatable || len(v.Topology.levels[0].Weights) > 0):
		return root.byShares(slots, v.Turn.Pod)
	case v.Turn.Beside < 0, !v.Topology.Has(v.Turn.Beside):
		return none
	}
	from, _ := slices.BinarySearch(slots, v.Topology.first(v.Turn.Beside))
	n := int(v.Turn.Pod-v.Turn.BesidePod) % len(slots)
	return slots[(from+n+len(slots))%len(slots)]
}

// byShares is the branch that gets a pod, from 0, if those before it were placed by shares alone.
func (g *group) byShares(slots []int32, pod int32) int32 {
	pods := make([]int32, len(slots))
	for {
		lowest := 0
		for i := range slots {
			if comparePods(pods[i], g.share(slots[i]), pods[lowest], g.share(slots[lowest]), false) < 0 {
				lowest = i
			}
		}
		if pod == 0 {
			return slots[lowest]
		}
		pods[lowest]++
		pod--
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
