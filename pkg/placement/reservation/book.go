// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reservation is the memory of an arbiter: which pods were admitted to which nodes, and have not been seen there yet.
//
// It answers the seed "Vela's commit phase": what is promised of a node is taken from it at once, before the pod is there, and given back
// when it turns out that the pod does not come. A pod may be promised several nodes: of a binding that was admitted
// nobody says whether it was made, until the pod is seen.
package reservation

import (
	"slices"
	"time"
)

// Reservation is room on a node that is kept for a pod.
type Reservation struct {
	Pod, Node string
	// Until is when it ends by itself.
	Until time.Time
}

// Book holds the reservations that have not ended. The zero value holds none. It is not safe for concurrent use.
type Book struct {
	byPod map[string][]entry
	// queue has them by when they were made, and some that have ended since.
	queue []entry
	count int
	// made is how many there have ever been.
	made uint64
}

// entry is a reservation that another one of the same pod, node and time is not taken for.
type entry struct {
	Reservation
	number uint64
}

// Reserve keeps room on a node for a pod until some time, which must not be before that of any earlier call. It is false if
// there is such a reservation already, which then lasts until that time.
func (b *Book) Reserve(pod, node string, until time.Time) bool {
	if b.byPod == nil {
		b.byPod = make(map[string][]entry)
	}
	b.made++
	e := entry{Reservation{pod, node, until}, b.made}
	b.queue = append(b.queue, e)
	before := len(b.byPod[pod])
	others := slices.DeleteFunc(b.byPod[pod], func(e entry) bool { return e.Node == node })
	b.byPod[pod] = append(others, e)
	b.count += len(b.byPod[pod]) - before
	return len(others) == before
}

// Has reports whether room on a node is kept for a pod.
func (b *Book) Has(pod, node string) bool {
	return slices.ContainsFunc(b.byPod[pod], func(e entry) bool { return e.Node == node })
}

// Nodes are those on which room is kept for a pod, in the order in which it was reserved there last.
func (b *Book) Nodes(pod string) (nodes []string) {
	for _, e := range b.byPod[pod] {
		nodes = append(nodes, e.Node)
	}
	return nodes
}

// Release ends all reservations of a pod: it has been seen, or is gone. It returns what Nodes would have.
func (b *Book) Release(pod string) []string {
	nodes := b.Nodes(pod)
	delete(b.byPod, pod)
	b.count -= len(nodes)
	return nodes
}

// Expire ends the reservations whose time is over, and returns them, the oldest first.
func (b *Book) Expire(now time.Time) (over []Reservation) {
	n := 0
	for ; n < len(b.queue) && !b.queue[n].Until.After(now); n++ {
		e := b.queue[n]
		i := slices.Index(b.byPod[e.Pod], e)
		if i < 0 {
			continue // it was released
		}
		over = append(over, e.Reservation)
		b.count--
		if b.byPod[e.Pod] = slices.Delete(b.byPod[e.Pod], i, i+1); len(b.byPod[e.Pod]) == 0 {
			delete(b.byPod, e.Pod)
		}
	}
	b.queue = slices.Delete(b.queue, 0, n)
	return over
}

// Len is how many reservations there are.
func (b *Book) Len() int { return b.count }
