// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"maps"
	"slices"
	"time"
)

// SetRule gives a revision another rule, as when its policy has changed. It is lost on
// one that is not in the ledger: Fail brings the rule along.
//
// It looks at all that is known of the revision: it is for rules that change, and not for
// each pod.
//
// The rule is not the workload's: in a rollout that changes labels the old pods and the
// new may be under different policies, and neither may judge the other's nodes.
func (l *Ledger) SetRule(of Revision, rule Rule) {
	r, ok := l.revisions[of]
	if rule = rule.Normal(); !ok || r.rule == rule {
		return
	}
	r.rule = rule
	l.history++
	l.refresh(r)
}

// Revisions are those in the ledger, in order.
func (l *Ledger) Revisions() []Revision {
	return slices.SortedFunc(maps.Keys(l.revisions), Revision.Compare)
}

// Forget drops a revision. It starts clean if it comes back.
func (l *Ledger) Forget(of Revision) {
	r, ok := l.revisions[of]
	if !ok {
		return
	}
	for _, e := range r.entries {
		r.drop(e)
	}
	delete(l.revisions, of)
	l.known(of, false)
}

// ForgetWorkload drops all revisions of a workload.
func (l *Ledger) ForgetWorkload(workload string) {
	for _, of := range l.Revisions() {
		if of.Workload == workload {
			l.Forget(of)
		}
	}
}

// ForgetNode drops what is known of a node. One that comes back under its name is
// another node.
func (l *Ledger) ForgetNode(node string) {
	for _, of := range l.Revisions() {
		r := l.revisions[of]
		e, ok := r.entries[node]
		if !ok {
			continue
		}
		r.drop(e)
		r.decide()
		l.tidy(r)
	}
}

// Forgive drops the failures of all revisions on a node up to a time, because an operator has
// mended it. Later failures, and the pods that run there, stay.
func (l *Ledger) Forgive(node string, until time.Time) {
	for _, of := range l.Revisions() {
		r := l.revisions[of]
		e, ok := r.entries[node]
		if !ok || len(e.failures) == 0 || e.failures[0].At.After(until) {
			continue
		}
		r.update(e, func() {
			later := slices.IndexFunc(e.failures, func(f Failure) bool { return f.At.After(until) })
			if later < 0 {
				later = len(e.failures)
			}
			e.failures = e.failures[later:]
		})
		l.history++
		l.tidy(r)
	}
}

// tidy forgets a revision of which no failure counts for anything any more.
func (l *Ledger) tidy(r *revision) {
	if r.failing == 0 {
		l.Forget(r.Revision)
	}
}
