// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"container/heap"
	"maps"
	"slices"
	"time"
)

// Advance moves the clock. What has left the window by then counts no more.
//
// A clock that goes back is believed, at the price of a look at everything: failures that
// were recorded at a time which is now in the future fade later by as much.
func (l *Ledger) Advance(now time.Time) {
	back := now.Before(l.now)
	l.now = now
	if back {
		for _, of := range l.Revisions() {
			l.refresh(l.revisions[of])
		}
	}
	for len(l.agenda) > 0 && !l.agenda[0].due.After(now) {
		e := l.agenda[0]
		e.of.update(e, func() {})
		l.tidy(e.of)
	}
}

// Next is the time before which Advance changes nothing, false if it never does.
func (l *Ledger) Next() (at time.Time, ok bool) {
	if len(l.agenda) == 0 {
		return at, false
	}
	return l.agenda[0].due, true
}

// Rule is that of a revision.
func (l *Ledger) Rule(of Revision) Rule {
	if r, ok := l.revisions[of]; ok {
		return r.rule
	}
	return l.defaults
}

// refresh looks at all of a revision again.
func (l *Ledger) refresh(r *revision) {
	for _, node := range slices.Sorted(maps.Keys(r.entries)) {
		r.update(r.entries[node], func() {})
	}
	l.tidy(r)
}

// schedule keeps an entry's place in the agenda right.
func (l *Ledger) schedule(e *entry) {
	e.due = e.next()
	switch {
	case e.due.IsZero():
		l.unschedule(e)
	case e.position < 0:
		heap.Push(&l.agenda, e)
	default:
		heap.Fix(&l.agenda, e.position)
	}
}

func (l *Ledger) unschedule(e *entry) {
	if e.position >= 0 {
		heap.Remove(&l.agenda, e.position)
	}
}

// agenda is a heap of the entries that change by themselves, the first to do so first.
type agenda []*entry

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due.Before(a[j].due) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].position, a[j].position = i, j
}

// Push is the heap's; see container/heap.
func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.position = len(*a)
	*a = append(*a, e)
}

// Pop is the heap's; see container/heap.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a, e.position = (*a)[:last], -1
	return e
}
