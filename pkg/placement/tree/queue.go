// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// queue is the nodes of a leaf, the best of them first.
//
// It is a heap of its own, and not one of container/heap, because moving a node
// through it is most of what a placement costs, and nearly all of that is waiting
// for memory. So an entry holds all that is compared, two to a cache line, and no
// comparison looks at a node or at a name; and the heap is four wide, so that it is
// half as deep. One more pod on 100,000 nodes in one leaf took 959 ns of CPU time with
// container/heap over pointers to nodes, and takes 367; on 1,000 nodes 303, and 166.
//
// Invariants:
//   - places is a heap, and place[s] is where in it the node of slot s stands
//   - nodes has every node at its slot, in name order unless shuffled; nil is a gap
type queue struct {
	places []place
	place  []int32
	nodes  []*node
	// shuffled says that a node has come since the slots were in name order. They
	// are put in order when the best node is asked for, and not for each that comes:
	// nothing but that depends on names.
	shuffled bool
}

// place is what a node is compared by. It must be renewed whenever that changes.
type place struct {
	merits
	slot int32 // the name, as it were
}

// merits are all that tells two nodes of a leaf apart but their names, less is better.
type merits [3]uint64

// ways is how many places stand directly behind one.
const ways = 4

func (n *node) merits() merits {
	return merits{
		pair(int64(oneIf(n.answer == refused))<<8+int64(n.standing), int64(n.failures)),
		pair(n.Tally.Revision, n.Tally.Workload),
		pair(int64(n.unforgiven), n.Tally.All),
	}
}

// pair makes one number of two, of which the first weighs more. What is beyond 32
// bits is all the same: no node has four billion pods.
func pair(first, second int64) uint64 { return narrow(first)<<32 | narrow(second) }

func narrow(x int64) uint64 { return uint64(min(max(x, 0), math.MaxUint32)) }

func (m *merits) compare(o *merits) int {
	switch {
	case m[0] != o[0]:
		return cmp.Compare(m[0], o[0])
	case m[1] != o[1]:
		return cmp.Compare(m[1], o[1])
	}
	return cmp.Compare(m[2], o[2])
}

func (p *place) before(o *place) bool {
	switch {
	case p.merits[0] != o.merits[0]:
		return p.merits[0] < o.merits[0]
	case p.merits[1] != o.merits[1]:
		return p.merits[1] < o.merits[1]
	case p.merits[2] != o.merits[2]:
		return p.merits[2] < o.merits[2]
	}
	return p.slot < o.slot
}

func (q *queue) len() int { return len(q.places) }

// at returns the node that stands at a place.
func (q *queue) at(i int) *node { return q.nodes[q.places[i].slot] }

// best returns the first node of a queue that is not empty.
func (q *queue) best() *node {
	q.sort()
	return q.at(0)
}

func (q *queue) add(n *node) {
	n.slot = int32(len(q.nodes))
	if len(q.nodes) > 0 {
		last := q.nodes[len(q.nodes)-1]
		q.shuffled = q.shuffled || last == nil || last.Name > n.Name
	}
	q.nodes = append(q.nodes, n)
	q.place = append(q.place, 0)
	q.places = append(q.places, place{n.merits(), n.slot})
	q.up(len(q.places) - 1)
}

// drop takes a node out. Its slot stays as a gap until more than half of all are gaps.
func (q *queue) drop(n *node) {
	at := int(q.place[n.slot])
	last := len(q.places) - 1
	moved := q.places[last]
	q.places = q.places[:last]
	q.nodes[n.slot] = nil
	if at != last {
		q.put(at, moved)
		q.up(at)
		q.down(int(q.place[moved.slot]))
	}
	if 2*last < len(q.nodes) {
		q.shuffled = true
		q.sort()
	}
}

// renew puts a node that has changed in its place.
func (q *queue) renew(n *node) {
	at := int(q.place[n.slot])
	q.places[at].merits = n.merits()
	q.down(at)
	q.up(int(q.place[n.slot]))
}

// renewAll puts all nodes in their places, when many have changed.
func (q *queue) renewAll() {
	for i := range q.places {
		q.places[i].merits = q.at(i).merits()
	}
	q.order()
}

// order makes a heap of places in any order.
func (q *queue) order() {
	for i := range q.places {
		q.place[q.places[i].slot] = int32(i)
	}
	followed := (len(q.places) + ways - 2) / ways // those with somebody behind them
	for i := followed - 1; i >= 0; i-- {
		q.down(i)
	}
}

// sort puts the slots in name order, if they are not.
func (q *queue) sort() {
	if !q.shuffled {
		return
	}
	q.shuffled = false
	q.nodes = slices.DeleteFunc(q.nodes, func(n *node) bool { return n == nil })
	slices.SortFunc(q.nodes, func(a, b *node) int { return strings.Compare(a.Name, b.Name) })
	q.place = q.place[:len(q.nodes)]
	for i, n := range q.nodes {
		n.slot = int32(i)
		q.places[i] = place{n.merits(), n.slot}
	}
	q.order()
}

// inOrder returns the nodes, best first.
func (q *queue) inOrder() []*node {
	q.sort()
	sorted := make([]place, 0, len(q.places))
	for _, n := range q.nodes {
		// By name first: many nodes have equal merits, and what is sorted stays so.
		if n != nil {
			sorted = append(sorted, q.places[q.place[n.slot]])
		}
	}
	slices.SortFunc(sorted, func(a, b place) int {
		if a.merits != b.merits {
			return a.compare(&b.merits)
		}
		return cmp.Compare(a.slot, b.slot)
	})
	nodes := make([]*node, len(sorted))
	for i, p := range sorted {
		nodes[i] = q.nodes[p.slot]
	}
	return nodes
}

func (q *queue) put(i int, p place) {
	q.places[i] = p
	q.place[p.slot] = int32(i)
}

// up moves what stands at i forward, past what it comes before.
func (q *queue) up(i int) {
	moving := q.places[i]
	for i > 0 {
		ahead := (i - 1) / ways
		if !moving.before(&q.places[ahead]) {
			break
		}
		q.put(i, q.places[ahead])
		i = ahead
	}
	q.put(i, moving)
}

// down moves what stands at i back, past what comes before it.
func (q *queue) down(i int) {
	moving := q.places[i]
	for {
		first := i*ways + 1
		if first >= len(q.places) {
			break
		}
		next := first
		for j := first + 1; j < min(first+ways, len(q.places)); j++ {
			if q.places[j].before(&q.places[next]) {
				next = j
			}
		}
		if !q.places[next].before(&moving) {
			break
		}
		q.put(i, q.places[next])
		i = next
	}
	q.put(i, moving)
}
