// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"fmt"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

// node has some capacity. Pods that are limited may be on it if there are fewer of them in its domain than the limit.
type node struct {
	name, domain string
	capacity     allocation.Vector
	down         bool
}

// pod runs on a node, or waits.
type pod struct {
	allocation.Pod
	of       int // the index of its allocation
	node     string
	limited  bool
	numbered bool // whether it is of its allocation's group
	budgets  []int
	// entry is what the last order says of it, and within whether it is within what its allocation reserves.
	entry  allocation.Entry
	within bool
}

// mayBeTried reports whether a pod waits for nothing but its turn and a node.
func (p *pod) mayBeTried() bool { return p.node == "" && p.entry.Class < allocation.StandsBy }

// cluster is nodes and pods in allocations, as plain as can be.
type cluster struct {
	nodes   []node
	tree    func() (root *allocation.Allocation, leaves []*allocation.Allocation)
	pods    []*pod
	counts  []int // of the groups of the allocations
	limit   int   // of limited pods in one domain, 0 for none
	allowed []int
	clock   int64
	made    MadeWay
	removed int // how often a pod was taken off its node
	asked   int // how often it was looked whether a preemptor fits
}

// one is a cluster with one allocation, which reserves nothing.
func one(nodes ...node) *cluster {
	return &cluster{nodes: nodes, tree: func() (*allocation.Allocation, []*allocation.Allocation) {
		a := &allocation.Allocation{Rank: allocation.DefaultRank}
		return a, []*allocation.Allocation{a}
	}}
}

func (c *cluster) add(name string, demand int64, priority int, node string) *pod {
	p := &pod{Pod: allocation.Pod{Key: name, Demand: allocation.Vector{demand}, Priority: priority, Arrival: int64(len(c.pods))}, node: node}
	c.pods = append(c.pods, p)
	return p
}

func (c *cluster) pod(name string) *pod {
	return c.pods[slices.IndexFunc(c.pods, func(p *pod) bool { return p.Key == name })]
}

// order is that of all pods.
func (c *cluster) order() []*pod {
	root, leaves := c.tree()
	var size allocation.Vector
	for _, n := range c.nodes {
		size = size.Plus(n.capacity)
	}
	groups := make([]allocation.Group, len(leaves))
	for i, count := range c.counts {
		groups[i].Free = count
	}
	for i, p := range c.pods {
		if p.Placed, p.Index, p.Group = p.node != "", i, nil; p.numbered {
			p.Group = &groups[p.of]
		}
		if p.numbered && p.Placed {
			groups[p.of].Free--
		}
		leaves[p.of].Pods = append(leaves[p.of].Pods, p.Pod)
	}
	var all []*pod
	for _, e := range allocation.Order(root, size, allocation.Options{}) {
		p := c.pods[e.Pod.Index]
		p.entry = e
		all = append(all, p)
	}
	for i := range all {
		all[i].within = within(all, i)
	}
	return all
}

// within reports whether a pod of an order is within what its allocation reserves, beside those of it that matter more and run or may be
// tried. The order itself is not asked.
func within(order []*pod, i int) bool {
	p := order[i]
	var before allocation.Vector
	for j, q := range order {
		more := q.Priority > p.Priority || q.Priority == p.Priority && j < i
		if q.of == p.of && more && (q.node != "" || q.mayBeTried()) {
			before = before.Plus(q.Demand)
		}
	}
	for r, reserved := range p.entry.Of.Reserved {
		if before.At(r) >= reserved {
			return false
		}
	}
	return p.Priority > 0
}

// fits reports whether a pod fits on a node beside those that are there.
func (c *cluster) fits(p *pod, name string) bool {
	n := c.nodes[slices.IndexFunc(c.nodes, func(n node) bool { return n.name == name })]
	sum, limited := p.Demand, 0
	for _, q := range c.pods {
		if q != p && q.node == name {
			sum = sum.Plus(q.Demand)
		}
		if q != p && q.node != "" && q.limited && c.domain(q.node) == n.domain {
			limited++
		}
	}
	for i := range sum {
		if sum[i] > n.capacity.At(i) {
			return false
		}
	}
	return !n.down && (c.limit == 0 || !p.limited || limited < c.limit)
}

func (c *cluster) domain(name string) string {
	return c.nodes[slices.IndexFunc(c.nodes, func(n node) bool { return n.name == name })].domain
}

// place puts a pod on the node with the fewest amount of the first resource in use, of those on which it fits.
func (c *cluster) place(p *pod) bool {
	best, least := "", int64(0)
	for _, n := range c.nodes {
		if !c.fits(p, n.name) {
			continue
		}
		var used int64
		for _, q := range c.pods {
			if q.node == n.name {
				used += q.Demand.At(0)
			}
		}
		if best == "" || used < least {
			best, least = n.name, used
		}
	}
	p.node = best
	return best != ""
}

// world is the pods of a tail, for one preemptor.
type world struct {
	*cluster
	preemptor *pod
	tail      []*pod
	nodes     []string // of the tail
	stay      []bool
}

func (w *world) Remove(i int)          { w.removed++; w.tail[i].node = "" }
func (w *world) Restore(i int)         { w.tail[i].node = w.nodes[i] }
func (w *world) Fits(node string) bool { w.asked++; return w.fits(w.preemptor, node) }

// worldOf is that of a preemptor, with what Walk is told of its tail.
func (c *cluster) worldOf(p *pod, order []*pod) (*world, []Pod) {
	w := &world{cluster: c, preemptor: p}
	var tail []Pod
	for _, q := range order[slices.Index(order, p)+1:] {
		if q.node == "" {
			continue
		}
		down := slices.ContainsFunc(c.nodes, func(n node) bool { return n.name == q.node && n.down })
		stays := down || c.made.For(0, q.Key, p.Key)
		w.tail, w.nodes, w.stay = append(w.tail, q), append(w.nodes, q.node), append(w.stay, stays)
		tail = append(tail, Pod{Node: q.node, Stays: stays, Far: p.limited && q.limited, Budgets: q.budgets})
	}
	return w, tail
}

// walk walks over the pods after a preemptor.
func (c *cluster) walk(p *pod, order []*pod) (w *world, plan Plan, ok bool) {
	w, tail := c.worldOf(p, order)
	var others []string
	for _, n := range c.nodes {
		others = append(others, n.name)
	}
	plan, ok = Walk(tail, others, c.allowed, w)
	return w, plan, ok
}

// now notes when a pod got its node, or was made anew without one.
func (c *cluster) now(p *pod) {
	c.clock++
	p.Arrival = 1000 + c.clock
}

// evicted is who made way for whom.
type evicted struct{ victim, preemptor *pod }

// step does what is done next. Who runs and must not goes, the last first: or else the first pod in the order for which anything can be done is
// placed. It is false if there is nothing to do.
func (c *cluster) step() (gone []evicted, done bool) {
	order := c.order()
	for _, p := range slices.Backward(order) {
		if p.entry.Exceeds() {
			p.node = ""
			c.now(p)
			return nil, true
		}
	}
	for _, p := range order {
		if !p.mayBeTried() {
			continue
		}
		if c.place(p) {
			c.now(p)
			return nil, true
		}
		if w, plan, ok := c.walk(p, order); ok {
			for _, i := range plan.Victims {
				gone = append(gone, evicted{w.tail[i], p})
				c.made.Note(0, p.Key, w.tail[i].Key)
				c.made.Keep(func(preemptor string) bool { return preemptor != w.tail[i].Key })
				c.now(w.tail[i])
			}
			p.node = plan.Node
			c.now(p)
			return gone, true
		}
	}
	return nil, false
}

// settle goes on until nothing can be done any more, and returns who was evicted.
func (c *cluster) settle() (gone []evicted) {
	for range 1000 {
		more, done := c.step()
		if !done {
			return gone
		}
		gone = append(gone, more...)
	}
	panic(fmt.Sprint("it does not settle: ", len(gone), " evictions"))
}
