// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"container/list"
	"slices"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// Options are what a ledger goes by.
type Options struct {
	// Rule holds for revisions that have none of their own.
	Rule Rule
	// OwnErrors says that an error which shows on more than half of the nodes that a
	// revision was tried on, and on two at least, marks none of them, and that nothing
	// does as long as it was tried on one node only.
	OwnErrors bool
	// Class is what a kind is one of, nil if there is no such thing: of kinds that are
	// not the workload's own one by one, all of a class may be so together.
	Class func(kind string) string
	// Known is called for each revision that enters the ledger, and for each that is
	// forgotten; it may be nil.
	Known func(of Revision, known bool)
}

// Ledger holds what is known of failures. It is not safe for concurrent use.
//
// All it records and returns is as of its clock, which only Advance moves.
type Ledger struct {
	defaults  Rule
	ownErrors bool
	class     func(string) string
	known     func(Revision, bool)
	now       time.Time

	revisions map[Revision]*revision
	marked    map[*entry]struct{}
	agenda    agenda

	// failures and entries are how many there are in all.
	failures, entries int
	// version counts the changes of records, history those of what Snapshot has.
	version, history uint64
}

// New returns an empty ledger.
func New(o Options) *Ledger {
	if o.Class == nil {
		o.Class = func(kind string) string { return kind }
	}
	if o.Known == nil {
		o.Known = func(Revision, bool) {}
	}
	return &Ledger{
		defaults: o.Rule.Normal(), ownErrors: o.OwnErrors, class: o.Class, known: o.Known,
		revisions: make(map[Revision]*revision), marked: make(map[*entry]struct{}),
	}
}

// Fail records a failure on a node, and the rule that the pod was under, which is the
// revision's from now on; a zero rule leaves it as it is. It reports whether the failure
// is new, and whether it is the first of the revision. After the first, the caller records
// all pods of the revision, and every change of them.
//
// A failure that has left the window before it is recorded does not count: a pod's status
// shows old failures for as long as the pod lives.
func (l *Ledger) Fail(of Revision, node string, under Rule, f Failure) (isNew, first bool) {
	if under == (Rule{}) {
		under = l.Rule(of)
	}
	under, f.At = under.Normal(), l.bound(f.At)
	if !under.isRecent(f.At, l.now) {
		return false, false
	}
	l.SetRule(of, under)
	known := l.Knows(of)
	return l.revision(of, under).fail(node, under.capacity(), f), !known
}

// fail adds failures and keeps at most so many. It reports whether it has any that is new.
func (r *revision) fail(node string, most int, failures ...Failure) (isNew bool) {
	e := r.entry(node)
	r.update(e, func() {
		for _, f := range failures {
			var inserted bool
			e.failures, inserted = insert(e.failures, f)
			e.failures = e.failures[max(0, len(e.failures)-most):]
			isNew = isNew || inserted && slices.Contains(e.failures, f)
		}
		for _, f := range failures {
			if p, placed := e.pods[f.Pod]; placed {
				p.failed = e.lastFailure(f.Pod)
				e.pods[f.Pod] = p
			}
		}
	})
	if isNew {
		r.in.history++
	}
	return isNew
}

// Place records that a pod is on a node, or about to be. Until it succeeds or fails it
// is unproven.
func (l *Ledger) Place(of Revision, node, uid string) {
	r, ok := l.revisions[of]
	if !ok {
		return
	}
	e := r.entry(node)
	if _, known := e.pods[uid]; !known {
		r.update(e, func() { e.place(uid) })
	}
}

// Gone records that a pod is not on a node any more, however it ended.
func (l *Ledger) Gone(of Revision, node, uid string) {
	r, ok := l.revisions[of]
	if !ok {
		return
	}
	if e, ok := r.entries[node]; ok {
		if _, known := e.pods[uid]; known {
			r.update(e, func() { e.gone(uid) })
			l.tidy(r)
		}
	}
}

// Succeed records that a pod has succeeded on a node, or has proven itself there. As long
// as it is there and does not fail, it goes on proving it.
func (l *Ledger) Succeed(of Revision, node, uid string, at time.Time) {
	r, ok := l.revisions[of]
	if !ok {
		return
	}
	e, at := r.entry(node), l.bound(at)
	p, known := e.pods[uid]
	if !at.After(e.succeeded) && (!known || !at.After(p.succeeded)) {
		return
	}
	r.update(e, func() {
		if known && at.After(p.succeeded) {
			p.succeeded = at
			e.pods[uid] = p
		}
		r.succeed(e, at)
	})
	l.tidy(r)
}

// succeed changes a fact; who calls it updates the entry.
func (r *revision) succeed(e *entry, at time.Time) {
	if at.After(e.succeeded) {
		e.succeeded = at
		r.in.history++
	}
}

// Knows reports whether the revision is in the ledger. Of one that is not, the ledger
// records nothing but failures.
func (l *Ledger) Knows(of Revision) bool {
	_, ok := l.revisions[of]
	return ok
}

// Record is how a revision has fared on a node.
func (l *Ledger) Record(of Revision, node string) placement.Record {
	if r, ok := l.revisions[of]; ok {
		if e, ok := r.entries[node]; ok {
			return e.record
		}
	}
	return placement.Record{}
}

// Changed names the nodes on which the record of a revision has changed since a version,
// the last change first; since 0 those on which it ever did. The version returned is
// that of now, and never 0 if there was a change. If anew is true the changes are not
// known, because a node or the revision was forgotten: read every record again.
func (l *Ledger) Changed(of Revision, since uint64) (nodes []string, anew bool, version uint64) {
	r, ok := l.revisions[of]
	if !ok {
		// With 0 for the version nothing needs to be remembered of what was forgotten.
		return nil, since != 0, 0
	}
	version = r.since
	if newest := r.changed.Front(); newest != nil {
		version = max(version, newest.Value.(*entry).version)
	}
	if since != 0 && since < r.since {
		return nil, true, version
	}
	for element := r.changed.Front(); element != nil; element = element.Next() {
		e := element.Value.(*entry)
		if e.version <= since {
			break
		}
		nodes = append(nodes, e.node)
	}
	return nodes, false, version
}

// revision is one that there is from now on. The rule is for one that is new.
func (l *Ledger) revision(of Revision, rule Rule) *revision {
	r, ok := l.revisions[of]
	if !ok {
		l.version++
		r = &revision{Revision: of, in: l, rule: rule, entries: make(map[string]*entry), changed: list.New(), since: l.version}
		l.revisions[of] = r
		l.known(of, true)
	}
	return r
}

// bound takes a time to come for now, and a time as the API would tell it: what is
// read from a record must be equal to what was written.
func (l *Ledger) bound(at time.Time) time.Time {
	if at.After(l.now) {
		at = l.now
	}
	return at.Round(0).UTC()
}
