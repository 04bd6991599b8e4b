// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"container/list"
	"slices"
	"strings"
)

// revision is what is known of one revision, on all nodes.
type revision struct {
	Revision
	in      *Ledger
	rule    Rule
	entries map[string]*entry

	// failing is how many entries have failures. Without any, the revision is forgotten.
	failing int
	// tried is how many nodes the revision was tried on, and kinds, by name, on how
	// many of them a kind of failure shows.
	tried int
	kinds []kind
	// comparable is isComparable as the entries know it.
	comparable bool

	// changed lists the entries by the version of their records, newest first.
	// Before the version since, nothing can be said of single nodes.
	changed *list.List
	since   uint64
}

// isComparable says whether a node can be to blame: one that the revision was tried on
// alone may be as good as any other.
func (r *revision) isComparable() bool { return !r.in.ownErrors || r.tried >= 2 }

type kind struct {
	name  string
	nodes int
	// own says that failures of the kind are the workload's own.
	own bool
}

// entry is that of a node, which there is from now on.
func (r *revision) entry(node string) *entry {
	e, ok := r.entries[node]
	if !ok {
		e = &entry{of: r, node: node, pods: make(map[string]pod), position: -1}
		r.entries[node] = e
	}
	return e
}

func (r *revision) find(name string) (at int, found bool) {
	return slices.BinarySearchFunc(r.kinds, name, func(k kind, name string) int { return strings.Compare(k.name, name) })
}

func (r *revision) isOwn(name string) bool {
	i, found := r.find(name)
	return found && r.kinds[i].own
}

// count adds what an entry says of its revision, or with -1 takes it away.
func (r *revision) count(e *entry, by int) {
	if e.tried {
		r.tried += by
	}
	if len(e.failures) > 0 {
		r.failing += by
	}
	for _, name := range e.shown {
		i, found := r.find(name)
		if !found {
			r.kinds = slices.Insert(r.kinds, i, kind{name: name})
		}
		r.kinds[i].nodes += by
	}
}

// decide finds which kinds are the workload's own, and whether nodes can be compared,
// and has the entries that this is news to reviewed. Two nodes at least: one node on
// which all goes wrong is what this package is about.
func (r *revision) decide() {
	var news []string
	for i := range r.kinds {
		k := &r.kinds[i]
		own := r.in.ownErrors && k.nodes >= 2 && 2*k.nodes > r.tried
		if own != k.own {
			k.own = own
			news = append(news, k.name)
		}
	}
	r.kinds = slices.DeleteFunc(r.kinds, func(k kind) bool { return k.nodes == 0 })
	all := r.isComparable() != r.comparable
	r.comparable = r.isComparable()
	if !all && len(news) == 0 {
		return
	}
	for _, e := range r.entries {
		if all || slices.ContainsFunc(e.failures, func(f Failure) bool { return slices.Contains(news, f.Kind) }) {
			r.review(e)
		}
	}
}

// update brings all that follows from an entry's facts up to date, once change has
// changed them.
func (r *revision) update(e *entry, change func()) {
	r.count(e, -1)
	change()
	e.settle()
	r.count(e, +1)
	r.decide()
	r.review(e)
	r.in.schedule(e)
}

// review makes an entry's record anew. Only a record that differs is a change.
func (r *revision) review(e *entry) {
	record, since := e.judge()
	if record != e.record {
		r.in.version++
		e.version = r.in.version
		if e.place == nil {
			e.place = r.changed.PushFront(e)
		} else {
			r.changed.MoveToFront(e.place)
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
	if e.place != nil {
		r.changed.Remove(e.place)
	}
	// Who asks cannot be told of a node that has no place in the list.
	r.in.version++
	r.since = r.in.version
	if len(e.failures) > 0 || !e.succeeded.IsZero() {
		r.in.history++
	}
}
