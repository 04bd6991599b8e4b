// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"container/list"
	"slices"
)

// revision is what is known of one revision, on all nodes.
type revision struct {
	Revision
	in      *Ledger
	rule    Rule
	entries map[string]*entry

	// failing is how many entries have failures, and failures how many these are. Without
	// any, the revision is forgotten.
	failing, failures int
	// tried is how many nodes the revision was tried on, and kinds on how many of them
	// a kind of failure shows; classes the same of the classes, without the kinds that
	// are its own by themselves: a program that ends with 1 everywhere does not excuse a
	// node on which it ends with 132, and one that ends with another number each time
	// blames none.
	tried          int
	kinds, classes tally
	// succeeded is how many entries know of a success.
	succeeded int
	// comparable is isComparable as the entries know it.
	comparable bool

	// changed lists the entries by the version of their records, newest first.
	// Before the version since, nothing can be said of single nodes.
	changed *list.List
	since   uint64
}

// isComparable reports whether a node can be to blame: one that the revision was tried on
// alone may be as good as any other.
func (r *revision) isComparable() bool { return !r.in.ownErrors || r.tried >= 2 }

// entry is that of a node, which there is from now on.
func (r *revision) entry(node string) *entry {
	e, ok := r.entries[node]
	if !ok {
		e = &entry{of: r, node: node, position: -1}
		r.entries[node] = e
		r.in.entries++
	}
	return e
}

// isOwn reports whether failures of a kind are the workload's own.
func (r *revision) isOwn(kind string) bool {
	return r.kinds.isOwn(kind) || r.classes.isOwn(r.in.class(kind))
}

// count adds what an entry says of its revision, or with -1 takes it away.
func (r *revision) count(e *entry, by int) {
	if e.tried {
		r.tried += by
	}
	if len(e.failures) > 0 {
		r.failing += by
	}
	r.failures += by * len(e.failures)
	r.in.failures += by * len(e.failures)
	r.succeeded += by * e.successes()
	for _, kind := range e.shown {
		r.kinds.count(kind, by)
	}
	for _, class := range e.classes {
		r.classes.count(class, by)
	}
}

// classify finds the classes of the kinds that are not the workload's own by themselves.
func (r *revision) classify(e *entry) {
	e.classes = nil
	for _, kind := range e.shown {
		if r.kinds.isOwn(kind) {
			continue
		}
		class := r.in.class(kind)
		if i, found := slices.BinarySearch(e.classes, class); !found {
			e.classes = slices.Insert(e.classes, i, class)
		}
	}
}

// decide finds which failures are the workload's own, and whether nodes can be compared,
// and has the entries that this is news to reviewed.
func (r *revision) decide() {
	kinds := r.kinds.decide(r.least())
	if len(kinds) > 0 {
		for _, e := range r.entries {
			if slices.ContainsFunc(e.shown, func(kind string) bool { return slices.Contains(kinds, kind) }) {
				r.count(e, -1)
				r.classify(e)
				r.count(e, +1)
			}
		}
	}
	classes := r.classes.decide(r.least())
	all := r.isComparable() != r.comparable
	r.comparable = r.isComparable()
	if !all && len(kinds)+len(classes) == 0 {
		return
	}
	for _, e := range r.entries {
		if all || slices.ContainsFunc(e.failures, func(f Failure) bool {
			return slices.Contains(kinds, f.Kind) || slices.Contains(classes, r.in.class(f.Kind))
		}) {
			r.review(e)
		}
	}
}

// least is on how many nodes an error shows that is the workload's own, 0 if none ever
// is: on more than half, and on two at least, because one node on which all goes wrong
// is what this package is about.
func (r *revision) least() int {
	if !r.in.ownErrors {
		return 0
	}
	return max(2, r.tried/2+1)
}

// update brings all that follows from an entry's facts up to date, once change has
// changed them.
func (r *revision) update(e *entry, change func()) {
	r.change(e, change)
	r.decide()
	r.review(e)
	r.in.schedule(e)
}

// change is update but for what the revision makes of it, for those who change many.
func (r *revision) change(e *entry, change func()) {
	r.count(e, -1)
	change()
	e.settle()
	r.classify(e)
	r.count(e, +1)
}

// review makes an entry's record anew. Only a record that differs is a change.
func (r *revision) review(e *entry) {
	record, since := e.judge()
	if record != e.record {
		r.in.version++
		e.version = r.in.version
		if e.element == nil {
			e.element = r.changed.PushFront(e)
		} else {
			r.changed.MoveToFront(e.element)
		}
	}
	if e.record, e.since = record, since; since.IsZero() {
		delete(r.in.marked, e)
	} else {
		r.in.marked[e] = struct{}{}
	}
}

// drop forgets an entry.
func (r *revision) drop(e *entry) {
	r.count(e, -1)
	r.in.unschedule(e)
	delete(r.in.marked, e)
	delete(r.entries, e.node)
	r.in.entries--
	if e.element != nil {
		r.changed.Remove(e.element)
	}
	// The node is in the list no more, so Changed cannot name it.
	r.in.version++
	r.since = r.in.version
	if len(e.failures) > 0 || !e.succeeded.IsZero() {
		r.in.history++
	}
}
