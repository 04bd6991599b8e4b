// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"math"
	"math/bits"
)

// Loads are the loads of a group's members, and the lowest of each 64 of them, and of
// each 64 of those.
//
// Load moves with every placement. So it is part of no order that is kept for
// a workload, and is looked at only among members that tie in all that is. To find the
// lowest of these, whole words are passed over that have none that is lower: a look at
// 100,000 nodes of one leaf is a look at some hundred numbers in most cases, and at most
// at those that tie.
type Loads struct {
	of       []uint32
	low, top []uint32
}

// NewLoads returns those of so many members. Put each of them, and then call Init.
func NewLoads(members int) Loads {
	words := (members + 63) / 64
	return Loads{make([]uint32, members), make([]uint32, words), make([]uint32, (words+63)/64)}
}

func lowest(of []uint32) uint32 {
	low := uint32(math.MaxUint32)
	for _, l := range of {
		low = min(low, l)
	}
	return low
}

// Of is the load of a member.
func (l *Loads) Of(slot int32) uint32 { return l.of[slot] }

// Put gives a member its first load.
func (l *Loads) Put(slot int32, load uint32) { l.of[slot] = load }

// Set changes the load of a member.
func (l *Loads) Set(slot int32, load uint32) {
	was := l.of[slot]
	l.of[slot] = load
	if word := slot / 64; load < l.low[word] || was == l.low[word] {
		l.renew(word)
	}
}

func (l *Loads) renew(word int32) {
	l.low[word] = lowest(l.of[word*64 : min(int(word)*64+64, len(l.of))])
	at := word / wordsPerBlock
	l.top[at] = lowest(l.low[at*wordsPerBlock : min(int(at+1)*wordsPerBlock, len(l.low))])
}

// Init finds the lowest loads.
func (l *Loads) Init() {
	for word := range l.low {
		l.renew(int32(word))
	}
}

// best returns the better of the member best, None if there is none, and those that have
// a bit in the word at: the lower load, and then the lower slot.
func (l *Loads) best(best, at int32, members uint64) int32 {
	if members == 0 || best != None && !l.mayBeat(best, at) {
		return best
	}
	for ; members != 0; members &= members - 1 {
		slot := at*64 + int32(bits.TrailingZeros64(members))
		if best == None || l.before(slot, best) {
			best = slot
		}
	}
	return best
}

// fresh returns the better of best and the open members that are not listed; of some
// members only, unless these are nil.
func (l *Loads) fresh(open []uint64, listed *Counted, members *Set, best int32) int32 {
	more, i := listed.more, 0 // the next word of more
	for at := int32(0); at < int32(len(open)); at++ {
		if at%wordsPerBlock == 0 && (l.noneBetter(best, at/wordsPerBlock) || listed.full(at/wordsPerBlock, len(l.of))) {
			if i < len(more) && more[i].at/wordsPerBlock == at/wordsPerBlock {
				i = listed.after(i)
			}
			at += wordsPerBlock - 1
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

// tied returns the best of the open members of a set, None if none is open.
func (l *Loads) tied(open []uint64, members *Set) int32 {
	best := l.best(None, 0, members.first&open[0])
	for i := 0; i < len(members.more); {
		w := &members.more[i]
		if l.noneBetter(best, w.at/wordsPerBlock) {
			i = members.after(i)
			continue
		}
		best = l.best(best, w.at, w.bits&open[w.at])
		i++
	}
	return best
}

// noneBetter reports that no member of a block is better than one that is known.
func (l *Loads) noneBetter(best, block int32) bool {
	return best != None && l.top[block] >= l.of[best] && block*blockSize > best
}

// mayBeat reports that a member of a word may be better than one that is known.
func (l *Loads) mayBeat(best, at int32) bool {
	return l.low[at] < l.of[best] || l.low[at] == l.of[best] && at*64 < best
}

func (l *Loads) before(a, b int32) bool {
	return l.of[a] < l.of[b] || l.of[a] == l.of[b] && a < b
}

// Tied is some members of a group that tie but for their loads: those of a class and those that are not listed.
type Tied struct {
	Class  *Set // nil for none
	Fresh  bool
	Listed *Counted
	Of     *Set // those that are not listed are of these; nil for all
}

// Least returns the open member with the least load, None if none is open.
func (l *Loads) Least(open []uint64, among *Tied) int32 {
	best := None
	if among.Class != nil {
		best = l.tied(open, among.Class)
	}
	if among.Fresh {
		best = l.fresh(open, among.Listed, among.Of, best)
	}
	return best
}
