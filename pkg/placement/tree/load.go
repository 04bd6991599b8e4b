// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"math"
	"math/bits"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// loads are the loads of a group's members, and the lowest of each 64 of them, and of
// each 64 of those.
//
// Load moves with every placement. So it is part of no order that is kept for
// a workload, and is looked at only among members that tie in all that is. To find the
// lowest of these, whole words are passed over that have none that is lower: a look at
// 100,000 nodes of one leaf is a look at some hundred numbers in most cases, and at most
// at those that tie.
type loads struct {
	of       []uint32
	low, top []uint32
}

func newLoads(members int) loads {
	words := (members + 63) / 64
	return loads{make([]uint32, members), make([]uint32, words), make([]uint32, (words+63)/64)}
}

func lowest(of []uint32) uint32 {
	low := uint32(math.MaxUint32)
	for _, l := range of {
		low = min(low, l)
	}
	return low
}

func (l *loads) set(slot int32, load uint32) {
	was := l.of[slot]
	l.of[slot] = load
	if word := slot / 64; load < l.low[word] || was == l.low[word] {
		l.renew(word)
	}
}

func (l *loads) renew(word int32) {
	l.low[word] = lowest(l.of[word*64 : min(int(word)*64+64, len(l.of))])
	at := word / block
	l.top[at] = lowest(l.low[at*block : min(int(at+1)*block, len(l.low))])
}

func (l *loads) init() {
	for word := range l.low {
		l.renew(int32(word))
	}
}

// best returns the better of the member best, none if there is none, and those that have
// a bit in the word at: the lower load, and then the lower slot.
func (l *loads) best(best, at int32, members uint64) int32 {
	if members == 0 || best != none && !l.mayBeat(best, at) {
		return best
	}
	for ; members != 0; members &= members - 1 {
		slot := at*64 + int32(bits.TrailingZeros64(members))
		if best == none || l.before(slot, best) {
			best = slot
		}
	}
	return best
}

// fresh returns the better of best and the open members that are not listed; of some
// members only, unless these are nil.
func (l *loads) fresh(open []uint64, listed *counted, members *set, best int32) int32 {
	more, i := listed.more, 0 // the next word of more
	for at := int32(0); at < int32(len(open)); at++ {
		if at%block == 0 && (l.noneBetter(best, at/block) || listed.full(at/block, len(l.of))) {
			if i < len(more) && more[i].at/block == at/block {
				i = listed.after(i)
			}
			at += block - 1
			continue
		}
		bits := open[at]
		if at == 0 {
			bits &^= listed.first
		} else if i < len(more) && more[i].at == at {
			bits &^= more[i].bits
			i++
		}
		if members != nil {
			bits &= members.has64(at)
		}
		best = l.best(best, at, bits)
	}
	return best
}

// tied returns the best of the open members of a set, none if none is open.
func (l *loads) tied(open []uint64, members *set) int32 {
	best := l.best(none, 0, members.first&open[0])
	for i := 0; i < len(members.more); {
		w := &members.more[i]
		if l.noneBetter(best, w.at/block) {
			i = members.after(i)
			continue
		}
		best = l.best(best, w.at, w.bits&open[w.at])
		i++
	}
	return best
}

// noneBetter reports that no member of a block is better than one that is known.
func (l *loads) noneBetter(best, block int32) bool {
	return best != none && l.top[block] >= l.of[best] && block*blockSize > best
}

// mayBeat reports that a member of a word may be better than one that is known.
func (l *loads) mayBeat(best, at int32) bool {
	return l.low[at] < l.of[best] || l.low[at] == l.of[best] && at*64 < best
}

func (l *loads) before(a, b int32) bool {
	return l.of[a] < l.of[b] || l.of[a] == l.of[b] && a < b
}

// sum makes the usage and the loads of a group from those of its members.
func (g *group) sum(t *Topology) {
	g.load = newLoads(len(g.members))
	for slot, member := range g.members {
		u := t.usageOf(member)
		g.usage = g.usage.Add(u)
		g.load.of[slot] = u.Load()
	}
	g.load.init()
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
		sizes[i].members.add(int32(slot))
	}
	if len(sizes) > 1 {
		g.sizes = sizes
	}
}

// after is the load of a member with the pod that is placed, if it is one of nodes that differ in size.
func (v View) after(g *group, slot int32) uint64 {
	load := uint64(g.load.of[slot])
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

// tied is some members of a group that tie but for their loads: those of a class and those that are not listed.
type tied struct {
	class  *set // nil for none
	fresh  bool
	listed *counted
	of     *set // those that are not listed are of these; nil for all
}

// least returns the open member with the least load, none if none is open.
func (l *loads) least(open []uint64, among *tied) int32 {
	best := none
	if among.class != nil {
		best = l.tied(open, among.class)
	}
	if among.fresh {
		best = l.fresh(open, among.listed, among.of, best)
	}
	return best
}

// least returns the open member that has the least load with the pod that is placed. Inside one size it is that with
// the least load.
func (v View) least(g *group, open []uint64, among *tied) int32 {
	if g.sizes == nil {
		return g.load.least(open, among)
	}
	best := none
	for i := range g.sizes {
		slot := g.load.least(v.Feasibility.within(open, &g.sizes[i].members), among)
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
		if g.load.of[at.slot] != load {
			g.load.set(at.slot, load)
		}
		if g.usage = g.usage.Add(c.by); g.parent == none {
			return
		}
		load = g.usage.Load()
		at = place{g.parent, g.slot}
	}
}
