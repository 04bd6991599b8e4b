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
	// Absent is what it requests of the resources of Allocation.Absent.
	Absent Vector
	// Priority is from 0 to MaxPriority, and holds inside the allocation only.
	Priority int
	// Placed says that the pod has a node. Of equals it comes first, so that nobody is evicted for the like of it (TV2).
	Placed bool
	// Group is the one that the pod is of, nil for none.
	Group *Group
	// Arrival is when the pod was made, on any scale. Earlier ones come first.
	Arrival int64
}

// Group is pods of one allocation of which so many may run at a time.
type Group struct {
	// Free is how many of its pods that wait may be given a node. The others stand by.
	Free int
}

// Allocation is what is reserved for some pods.
type Allocation struct {
	// Name tells the allocation from its siblings.
	Name string
	// Reserved is for the pods of this allocation. Those of its children is not part of it.
	Reserved Vector
	// Absent is reserved too, of resources that are not there. No utilization is measured by them, but MaxUtilization holds for them.
	Absent Vector
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
	// StandsBy are pods that wait for others of their group to leave. They must not be tried.
	StandsBy
	// Capped are pods beyond their allocation's MaxUtilization. Those that wait must not be tried, and those that have a node must not run.
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
	// Before and After are the utilization without the pod and with it, of the last level that was merged.
	Before, After float64
}

// Exceeds reports that the pod has a node and must not run.
func (e *Entry) Exceeds() bool { return e.Class == Capped && e.Pod.Placed }

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

// own is the queue of the allocation's own pods, by class and then by priority. Their class and rank are settled here, and kept at all levels.
//
// Pods that must not be tried come after all others. So they use up nothing of what is reserved, neither of this allocation nor of those
// that it is merged with.
func (a *Allocation) own() []Entry {
	pods := make([]*Pod, len(a.Pods))
	for i := range a.Pods {
		pods[i] = &a.Pods[i]
	}
	slices.SortFunc(pods, func(p, q *Pod) int { return cmp.Or(cmp.Compare(q.Priority, p.Priority), comparePods(p, q)) })
	queue, sorted := make([]Entry, len(pods)), true
	var up upTo
	for i, p := range pods {
		queue[i] = Entry{Pod: p, Of: a, Class: up.class(a, p), Rank: a.Rank}
		sorted = sorted && (i == 0 || queue[i-1].Class <= queue[i].Class)
	}
	if !sorted {
		slices.SortStableFunc(queue, func(e, f Entry) int { return cmp.Compare(e.Class, f.Class) })
	}
	measure(queue, a.Reserved, a.Reserved)
	for i := range queue {
		if e := &queue[i]; e.Class == Ordinary && e.Before < 0 {
			e.Reserved, e.Rank = true, a.Rank-a.Adjustment
		}
	}
	return queue
}

// upTo is what the pods of an allocation come to up to one of them, by priority.
type upTo struct {
	// all is what all but those that stand by request, and placed those that have a node.
	all, placed requests
	// waiting is how many wait of each group.
	waiting map[*Group]int
}

// class adds the next pod, and returns its class.
func (u *upTo) class(a *Allocation, p *Pod) Class {
	if p.Group != nil && !p.Placed {
		if u.waiting == nil {
			u.waiting = make(map[*Group]int)
		}
		if u.waiting[p.Group]++; u.waiting[p.Group] > p.Group.Free {
			return StandsBy
		}
	}
	class := Ordinary
	if p.Priority == 0 {
		class = Last
	}
	if a.MaxUtilization <= 0 {
		return class
	}
	u.all.add(p)
	sum := &u.all
	if p.Placed {
		// Those that wait do not count for it, as it is not known whether any node takes them.
		u.placed.add(p)
		sum = &u.placed
	}
	if class == Last || a.exceeded(sum) {
		return Capped // and so are all that follow of those that wait (TV4, TV11)
	}
	return class
}

// requests is what some pods request.
type requests struct{ demand, absent Vector }

func (r *requests) add(p *Pod) {
	r.demand = r.demand.Plus(p.Demand)
	if len(p.Absent) > 0 {
		r.absent = r.absent.Plus(p.Absent)
	}
}

// exceeded reports whether pods request more than MaxUtilization allows of any resource that is reserved. Others are not
// bounded: a bound of nothing would be one that nobody has set. Where nothing is reserved, anything is more.
func (a *Allocation) exceeded(sum *requests) bool {
	none := true
	for _, of := range [...]struct{ reserved, demand Vector }{{a.Reserved, sum.demand}, {a.Absent, sum.absent}} {
		for i, reserved := range of.reserved {
			if reserved <= 0 {
				continue
			}
			if none = false; float64(of.demand.At(i)) > a.MaxUtilization*float64(reserved) {
				return true
			}
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
