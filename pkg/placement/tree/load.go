// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/members"
)

// sum makes the usage and the loads of a group from those of its members.
func (g *group) sum(t *Topology) {
	g.load = members.NewLoads(len(g.members))
	for slot, member := range g.members {
		u := t.usageOf(member)
		g.usage = g.usage.Add(u)
		g.load.Put(int32(slot), u.Load())
	}
	g.load.Init()
	g.sizes = nil
	if t.ofNodes(g) {
		g.divideBySize(t)
	}
}

// divideBySize finds the sizes of members, in the order in which they first occur.
func (g *group) divideBySize(t *Topology) {
	var sizes []sizeClass
	for slot, member := range g.members {
		size := t.usageOf(member).Size()
		i := slices.IndexFunc(sizes, func(c sizeClass) bool { return c.size == size })
		if i < 0 {
			i = len(sizes)
			sizes = append(sizes, sizeClass{size: size})
		}
		sizes[i].members.Add(int32(slot))
	}
	if len(sizes) > 1 {
		g.sizes = sizes
	}
}

// after is the load of a member with the pod that is placed, if it is one of nodes that differ in size.
func (v View) after(g *group, slot int32) uint64 {
	load := uint64(g.load.Of(slot))
	if g.sizes != nil {
		load += uint64(v.Topology.usageOf(g.members[slot]).Size().Share(v.Feasibility.Request))
	}
	return load
}

// before reports that a member has the lower load with the pod that is placed, or else the lower slot.
func (v View) before(g *group, a, b int32) bool {
	aLoad, bLoad := v.after(g, a), v.after(g, b)
	return aLoad < bLoad || aLoad == bLoad && a < b
}

// least returns the open member that has the least load with the pod that is placed. Inside one size it is that with
// the least load.
func (v View) least(g *group, open []uint64, among *members.Tied) int32 {
	if g.sizes == nil {
		return g.load.Least(open, among)
	}
	best := none
	for i := range g.sizes {
		slot := g.load.Least(v.Feasibility.within(open, &g.sizes[i].members), among)
		if slot != none && (best == none || v.before(g, slot, best)) {
			best = slot
		}
	}
	return best
}

// Refresh has the loads follow the nodes. The structure must not be stale.
func (t *Topology) Refresh() {
	changes, known := t.nodes.since(t.version)
	t.version = t.nodes.version
	if !known {
		for i := len(t.groups) - 1; i >= 0; i-- {
			t.groups[i].usage = placement.Usage{}
			t.groups[i].sum(t)
		}
		return
	}
	for i := range changes {
		t.reload(&changes[i])
	}
}

// reload renews the loads from a node up to the root.
func (t *Topology) reload(c *change) {
	if !t.Has(c.node) {
		return
	}
	at := t.where[c.node]
	load := t.nodes.all[c.node].Usage.Load()
	for {
		g := &t.groups[at.group]
		if g.load.Of(at.slot) != load {
			g.load.Set(at.slot, load)
		}
		if g.usage = g.usage.Add(c.by); g.parent == none {
			return
		}
		load = g.usage.Load()
		at = place{g.parent, g.slot}
	}
}
