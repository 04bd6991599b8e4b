// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"math"
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

// divideBySize finds the sizes of members and the hours in which they end, the longest-lived first.
func (g *group) divideBySize(t *Topology) {
	var sizes []sizeClass
	for slot, member := range g.members {
		c := sizeClass{sooner: t.sooner(member), size: t.usageOf(member).Size()}
		i, known := slices.BinarySearchFunc(sizes, c, sizeClass.compare)
		if !known {
			sizes = slices.Insert(sizes, i, c)
		}
		sizes[i].members.Add(int32(slot))
	}
	if len(sizes) > 1 {
		g.sizes = sizes
	}
}

func (c sizeClass) compare(o sizeClass) int {
	return cmp.Or(cmp.Compare(c.sooner, o.sooner), c.size.Compare(o.size))
}

// sooner is the higher the sooner a member ends, and 0 for one that has no end.
func (t *Topology) sooner(member int32) int32 {
	if member < 0 || t.nodes.all[member].Ends == 0 {
		return 0
	}
	return math.MaxInt32 - t.nodes.all[member].Ends
}

// after orders members that tie in all else: nodes that differ by the hour in which they end, the last first, then by their load with the pod
// that is placed, which has 33 bits. Others are ordered by their load.
func (v View) after(g *group, slot int32) uint64 {
	load := uint64(g.load.Of(slot))
	if g.sizes != nil {
		load += uint64(v.Topology.usageOf(g.members[slot]).Size().Share(v.Feasibility.Request))
		load += uint64(v.Topology.sooner(g.members[slot])) << 33
	}
	return load
}

// before reports that a member is the better of two by what comes after their keys, or else has the lower slot.
func (v View) before(g *group, a, b int32) bool {
	aLoad, bLoad := v.after(g, a), v.after(g, b)
	return aLoad < bLoad || aLoad == bLoad && a < b
}

// least returns the open member that has the least load with the pod that is placed, of the nodes that live longest. Inside one size it
// is that with the least load.
func (v View) least(g *group, open []uint64, among *members.Tied) int32 {
	if g.sizes == nil {
		return g.load.Least(open, among)
	}
	best := none
	for i := range g.sizes {
		if best != none && g.sizes[i].sooner > v.Topology.sooner(g.members[best]) {
			break
		}
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
