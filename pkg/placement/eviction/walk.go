// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import "slices"

// Pod is a running pod that comes after the preemptor.
type Pod struct {
	// Node is where it runs.
	Node string
	// Stays says that it is not to be evicted: its node is closed, so that it would make way for nobody (TV14).
	Stays bool
	// Far says that it may be in the way on other nodes as well, by a limit of its domain or an anti-affinity.
	Far bool
	// Budgets are the disruption budgets that count it, by their index.
	Budgets []int
}

// World is where an eviction is tried out. Pods are named by their index.
type World interface {
	// Remove takes a pod off its node, and Restore puts it back.
	Remove(pod int)
	Restore(pod int)
}

// Nodes is the world of a preemptor that is one pod.
type Nodes interface {
	World
	// Fits reports whether the preemptor fits on a node now.
	Fits(node string) bool
}

// Plan is what lets the preemptor fit.
type Plan struct {
	// Node is where. It is "" for a group.
	Node string
	// Victims are the pods that have to go, in their order.
	Victims []int
	// Violations is how many of them disruption budgets do not let go.
	Violations int
}

// Each of thousands of pods may concern all nodes, for which nobody could wait. So it is bounded how often it is looked whether the preemptor
// fits on other nodes than that of the pod that was taken away last.
const (
	// maxTries bounds that for all pods.
	maxTries = 1 << 14
	// maxOthers bounds it for each, of nodes from which nobody has to go.
	maxOthers = 64
)

// Walk finds the victims for a preemptor, among the pods that come after it, in their order. Others are nodes on which it may fit if
// only a pod goes that is Far. Where they are very many, not all are looked at until all pods are off their nodes: nobody who could make way is
// missed, but another one than the last in the order may have to. Allowed has for
// each disruption budget how many of its pods may go. A plan that keeps them all is taken before one that does not. The world is left with the victims removed; without a plan, as it was.
func Walk(tail []Pod, others []string, allowed []int, world Nodes) (Plan, bool) {
	w := newWalk(tail, allowed, world)
	try := func(node string) (Plan, bool) {
		fits := func() bool { return world.Fits(node) }
		if !fits() {
			return Plan{}, false
		}
		plan := w.putBack(fits, func(i int) bool { return tail[i].Node == node })
		if plan.Node = node; w.sparing && plan.Violations > 0 {
			w.undo(plan)
			return Plan{}, false
		}
		return plan, true
	}
	return w.keepingBudgets(func() (Plan, bool) {
		for i := range slices.Backward(tail) {
			if !w.remove(i) {
				continue
			}
			for _, node := range w.concerned(i, others) {
				if plan, ok := try(node); ok {
					return plan, true
				}
			}
		}
		if len(others) > 0 { // else no pod is in the way but on its own node
			for _, node := range slices.Concat(others, w.nodes) {
				if plan, ok := try(node); ok {
					return plan, true
				}
			}
		}
		return Plan{}, false
	})
}

// concerned are the nodes on which the preemptor may fit now that a pod is gone, and did not before.
func (w *walk) concerned(i int, others []string) []string {
	nodes := []string{w.tail[i].Node}
	if !w.tail[i].Far || w.tries > maxTries {
		return nodes
	}
	nodes = append(nodes, others[:min(len(others), maxOthers)]...)
	for _, node := range w.nodes {
		if node != nodes[0] {
			nodes = append(nodes, node)
		}
	}
	w.tries += len(nodes)
	return nodes
}

// walk is the state of one.
type walk struct {
	tail    []Pod
	allowed []int
	world   World
	// sparing says that disruption budgets are kept; spared that some plan was not looked at or not taken for it.
	sparing, spared bool
	// removed are the pods that are off their nodes, the last of the order first.
	removed []int
	// nodes are those that they were on, and tries how many nodes have been concerned.
	nodes []string
	on    map[string]bool
	tries int
}

func newWalk(tail []Pod, allowed []int, world World) *walk {
	return &walk{tail: tail, allowed: allowed, world: world, on: make(map[string]bool)}
}

// keepingBudgets looks for a plan that keeps all disruption budgets, and for any if there is none.
func (w *walk) keepingBudgets(find func() (Plan, bool)) (Plan, bool) {
	for _, w.sparing = range []bool{true, false} {
		if !w.sparing && !w.spared {
			break // all plans have been looked at
		}
		if plan, ok := find(); ok {
			return plan, true
		}
		w.restoreAll()
	}
	return Plan{}, false
}

// remove takes a pod off its node, if it may go.
func (w *walk) remove(i int) bool {
	if w.tail[i].Stays {
		return false
	}
	if w.sparing && slices.ContainsFunc(w.tail[i].Budgets, func(b int) bool { return w.allowed[b] <= 0 }) {
		w.spared = true
		return false
	}
	w.world.Remove(i)
	w.removed = append(w.removed, i)
	if node := w.tail[i].Node; !w.on[node] {
		w.on[node] = true
		w.nodes = append(w.nodes, node)
	}
	return true
}

func (w *walk) restoreAll() {
	for _, i := range w.removed {
		w.world.Restore(i)
	}
	w.removed, w.nodes, w.tries = nil, nil, 0
	clear(w.on)
}

// undo has all pods off their nodes again that a plan has put back.
func (w *walk) undo(plan Plan) {
	w.spared = true
	for _, i := range w.removed {
		if !slices.Contains(plan.Victims, i) {
			w.world.Remove(i)
		}
	}
}

// putBack puts pods back in their order, beside the preemptor, and returns those that cannot be. Pods that a disruption budget does
// not let go are put back before the others. Near are those that are likely to be in the way: all others are tried together at first.
func (w *walk) putBack(fits func() bool, near func(int) bool) Plan {
	inOrder := slices.Clone(w.removed)
	slices.Sort(inOrder)
	violating, others := w.split(inOrder)
	inOrder = slices.Concat(violating, others)
	restored := make(map[int]bool, len(inOrder))
	for _, i := range inOrder {
		if !near(i) {
			w.world.Restore(i)
			restored[i] = true
		}
	}
	if len(restored) > 0 && !fits() {
		// Something that holds for several nodes, such as a limit of a domain, is in the way.
		for _, i := range inOrder {
			if restored[i] {
				w.world.Remove(i)
			}
		}
		clear(restored)
	}
	var plan Plan
	for _, i := range inOrder {
		if restored[i] {
			continue
		}
		if w.world.Restore(i); !fits() {
			w.world.Remove(i)
			plan.Victims = append(plan.Victims, i)
		}
	}
	slices.Sort(plan.Victims)
	violating, _ = w.split(plan.Victims)
	plan.Violations = len(violating)
	return plan
}
