// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"math"
	"slices"
)

// MaxPriority is the priority of the pods that matter most to their allocation. Those of 0 run where nobody else needs the capacity.
const MaxPriority = 100

// DefaultRank is the rank of allocations of which nothing is said. Lower ranks come first.
const DefaultRank = 100

// Pod is a pod as the order sees it.
type Pod struct {
	// Key tells the pod from all others. It decides where nothing else does.
	Key string
	// Index is for the caller to find the pod again. It decides nothing.
	Index int
	// Demand is what the pod requests.
	Demand Vector
	// Priority is from 0 to MaxPriority, and holds inside the allocation only.
	Priority int
	// Placed says that the pod has a node. Of equals it comes first, so that nobody is evicted for the like of it (TV2).
	Placed bool
	// Arrival is when the pod was made, on any scale. Earlier ones come first.
	Arrival int64
}

// Allocation is what is reserved for some pods.
type Allocation struct {
	// Name tells the allocation from its siblings.
	Name string
	// Reserved is for the pods of this allocation. Those of its children is not part of it.
	Reserved Vector
	// Rank is that of the pods; lower ones come first. Within the reservation it is less by Adjustment, which is not
	// negative (TV3).
	Rank, Adjustment int
	// MaxUtilization is up to which multiple of Reserved pods may run (TV11), and none of priority 0 (TV4). 0 is any.
	MaxUtilization float64

	Pods     []Pod
	Children []*Allocation
}

// Class is what comes before rank and utilization.
type Class uint8

// The classes, in their order.
const (
	// Ordinary pods are ordered by rank and utilization.
	Ordinary Class = iota
	// Last are the pods of priority 0, whatever their rank (choice T-c).
	Last
	// Capped are pods beyond their allocation's MaxUtilization. They must not be tried.
	Capped
)

// Entry is a pod at its position.
type Entry struct {
	Pod *Pod
	// Of is the pod's allocation.
	Of    *Allocation
	Class Class
	Rank  int
	// Reserved says that the pod is within what its own allocation reserves. So is the one that crosses the bound (TV3).
	Reserved bool
	// Exceeds says that the pod is placed and must not run: the placed pods up to it alone are beyond MaxUtilization. Those that wait do not count,
	// as it is not known whether any node takes them.
	Exceeds bool
	// Before and After are the utilization without the pod and with it, of the last level that was merged.
	Before, After float64
}

// compare orders entries of several queues.
func (e *Entry) compare(o *Entry) int {
	return cmp.Or(
		cmp.Compare(e.Class, o.Class), cmp.Compare(e.Rank, o.Rank), cmp.Compare(e.Before, o.Before), cmp.Compare(e.After, o.After),
		comparePods(e.Pod, o.Pod))
}

// comparePods puts pods first that are placed, then older ones.
func comparePods(p, q *Pod) int {
	if p.Placed != q.Placed {
		if p.Placed {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.Arrival, q.Arrival), cmp.Compare(p.Key, q.Key))
}

// own is the queue of the allocation's own pods, by priority. Their class and rank are settled here, and kept at all levels.
func (a *Allocation) own() []Entry {
	pods := make([]*Pod, len(a.Pods))
	for i := range a.Pods {
		pods[i] = &a.Pods[i]
	}
	slices.SortFunc(pods, func(p, q *Pod) int { return cmp.Or(cmp.Compare(q.Priority, p.Priority), comparePods(p, q)) })
	queue := make([]Entry, len(pods))
	for i, p := range pods {
		queue[i] = Entry{Pod: p, Of: a, Rank: a.Rank}
		if p.Priority == 0 {
			queue[i].Class = Last
		}
	}
	measure(queue, a.Reserved, a.Reserved)
	var demand, placed Vector
	for i := range queue {
		e := &queue[i]
		demand = demand.Plus(e.Pod.Demand)
		if e.Pod.Placed {
			placed = placed.Plus(e.Pod.Demand)
		}
		switch {
		case a.MaxUtilization > 0 && (e.Class == Last || a.exceeded(demand)):
			e.Exceeds = e.Pod.Placed && (e.Class == Last || a.exceeded(placed))
			e.Class = Capped // and so are all that follow (TV4, TV11)
		case e.Class == Ordinary && e.Before < 0:
			e.Reserved, e.Rank = true, a.Rank-a.Adjustment
		}
	}
	return queue
}

// exceeded reports whether a demand is more than MaxUtilization allows of any resource that is reserved. Others are not
// bounded: a bound of nothing would be one that nobody has set.
func (a *Allocation) exceeded(demand Vector) bool {
	none := true
	for i, reserved := range a.Reserved {
		if reserved <= 0 {
			continue
		}
		if none = false; float64(demand.At(i)) > a.MaxUtilization*float64(reserved) {
			return true
		}
	}
	return none
}

// measure computes the utilization of a queue in its order. For pods of priority 0 it is beyond all bounds.
func measure(queue []Entry, reserved, available Vector) {
	resources := max(len(reserved), len(available))
	for i := range queue {
		resources = max(resources, len(queue[i].Pod.Demand))
	}
	demand := make(Vector, resources)
	before := utilization(demand, reserved, available)
	for i := range queue {
		e := &queue[i]
		for r, amount := range e.Pod.Demand {
			demand[r] = add(demand[r], amount)
		}
		e.Before, e.After = before, utilization(demand, reserved, available)
		before = e.After
		if e.Class == Last {
			e.Before, e.After = math.Inf(1), math.Inf(1)
		}
	}
}
