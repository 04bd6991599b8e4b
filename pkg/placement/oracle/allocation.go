// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math/big"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

// AllocationOrder returns the keys of all pods of a tree of allocations in their order, as what is said of two pods has it: they are
// compared where their allocations meet, and what stands before each there is summed up from nothing. Every pod must request
// something of each resource, and the size must have some of each: where utilization does not grow, a queue has an order that no two of its pods tell.
func AllocationOrder(root *allocation.Allocation, size allocation.Vector) []string {
	o := &allocationOrder{size: size}
	o.collect(root, nil)
	for _, p := range o.pods {
		p.class = o.classOf(p)
	}
	keys := make([]string, len(o.pods))
	for _, p := range o.pods {
		before := 0
		for _, q := range o.pods {
			if p != q && o.less(q, p, 0) {
				before++
			}
		}
		keys[before] = p.Key
	}
	return keys
}

type allocationOrder struct {
	size allocation.Vector
	pods []*podInTree
}

// podInTree is a pod, and the allocations from the root down to its own.
type podInTree struct {
	*allocation.Pod
	path []*allocation.Allocation
	// class is 0 for most pods, 1 for those of priority 0, 2 for those that stand by, and 3 beyond the allocation's bound.
	class int
}

func (p *podInTree) own() *allocation.Allocation { return p.path[len(p.path)-1] }

func (o *allocationOrder) collect(a *allocation.Allocation, above []*allocation.Allocation) {
	path := append(slices.Clone(above), a)
	for i := range a.Pods {
		o.pods = append(o.pods, &podInTree{Pod: &a.Pods[i], path: path})
	}
	for _, child := range a.Children {
		o.collect(child, path)
	}
}

// less compares two pods of one allocation at a depth, or of allocations below it.
func (o *allocationOrder) less(p, q *podInTree, depth int) bool {
	ownP, ownQ := len(p.path)-1 == depth, len(q.path)-1 == depth
	switch {
	case ownP && ownQ:
		return ofOneAllocation(p, q)
	case !ownP && !ownQ && p.path[depth+1] == q.path[depth+1]:
		return o.less(p, q, depth+1)
	}
	for _, c := range []int{
		p.class - q.class, o.rank(p) - o.rank(q),
		o.utilization(p, depth, ownP, false).Cmp(o.utilization(q, depth, ownQ, false)),
		o.utilization(p, depth, ownP, true).Cmp(o.utilization(q, depth, ownQ, true)),
	} {
		if c != 0 {
			return c < 0
		}
	}
	return placedThenOlder(p, q)
}

func ofOneAllocation(p, q *podInTree) bool {
	if p.class != q.class {
		return p.class < q.class
	}
	return byPriority(p, q)
}

func byPriority(p, q *podInTree) bool {
	if p.Priority != q.Priority {
		return p.Priority > q.Priority
	}
	return placedThenOlder(p, q)
}

func placedThenOlder(p, q *podInTree) bool {
	switch {
	case p.Placed != q.Placed:
		return p.Placed
	case p.Arrival != q.Arrival:
		return p.Arrival < q.Arrival
	}
	return p.Key < q.Key
}

func (o *allocationOrder) classOf(p *podInTree) int {
	switch a := p.own(); {
	case o.standsBy(p):
		return 2
	case a.MaxUtilization > 0 && (p.Priority == 0 || o.beyondBound(p)):
		return 3
	case p.Priority == 0:
		return 1
	}
	return 0
}

// standsBy reports that as many pods of its group wait before a pod as may be given a node.
func (o *allocationOrder) standsBy(p *podInTree) bool {
	before := 0
	for _, q := range o.pods {
		if q.Group == p.Group && !q.Placed && byPriority(q, p) {
			before++
		}
	}
	return p.Group != nil && !p.Placed && before >= p.Group.Free
}

// beyondBound reports that a pod that has a node, and those of its allocation before it that have one, are more than is allowed: or that one that
// waits is, and all before it that do not stand by.
func (o *allocationOrder) beyondBound(p *podInTree) bool {
	a, bounded := p.own(), false
	var sum allocation.Vector
	for _, q := range o.pods {
		if q.own() == a && (q == p || byPriority(q, p)) && (q.Placed || !p.Placed && !o.standsBy(q)) {
			sum = sum.Plus(q.Demand)
		}
	}
	for i, reserved := range a.Reserved {
		if reserved > 0 && float64(sum.At(i)) > a.MaxUtilization*float64(reserved) {
			return true
		}
		bounded = bounded || reserved > 0
	}
	return !bounded
}

func (o *allocationOrder) rank(p *podInTree) int {
	a := p.own()
	if p.class == 0 && o.within(p) {
		return a.Rank - a.Adjustment
	}
	return a.Rank
}

// within reports that less than what is reserved is requested before a pod, of each resource.
func (o *allocationOrder) within(p *podInTree) bool {
	before := o.demand(p, len(p.path)-1, true, false)
	for i := range max(len(before), len(p.own().Reserved), len(o.size)) {
		if before.At(i) >= p.own().Reserved.At(i) {
			return false
		}
	}
	return true
}

// utilization of a pod among those below the allocation that its path has after a depth, or among the own ones of that at the depth.
func (o *allocationOrder) utilization(p *podInTree, depth int, own, with bool) *big.Rat {
	of := depth
	if !own {
		of++
	}
	demand, reserved := o.demand(p, of, own, with), reservedBelow(p.path[of])
	if own {
		reserved = p.path[of].Reserved
	}
	var most *big.Rat
	for i := range max(len(demand), len(reserved), len(o.size)) {
		if u := big.NewRat(demand.At(i)-reserved.At(i), reserved.At(i)+o.size.At(i)); most == nil || u.Cmp(most) > 0 {
			most = u
		}
	}
	if p.class == 1 {
		return big.NewRat(1<<40, 1)
	}
	return most
}

// demand sums up what is requested before a pod, and by it if with is set: of the pods of the allocation at a depth of its path alone, or also of those
// below it.
func (o *allocationOrder) demand(p *podInTree, depth int, own, with bool) allocation.Vector {
	var sum allocation.Vector
	for _, q := range o.pods {
		beside := len(q.path) > depth && q.path[depth] == p.path[depth] && (!own || len(q.path)-1 == depth)
		if beside && (q == p && with || q != p && o.less(q, p, depth)) {
			sum = sum.Plus(q.Demand)
		}
	}
	return sum
}

func reservedBelow(a *allocation.Allocation) allocation.Vector {
	sum := a.Reserved
	for _, child := range a.Children {
		sum = sum.Plus(reservedBelow(child))
	}
	return sum
}
