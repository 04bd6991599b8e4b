// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"maps"
	"slices"
)

// SetRule gives a workload another rule, as when its policy has changed. It is lost on
// one that has no revision in the ledger: Fail brings the rule along.
func (l *Ledger) SetRule(workload string, rule Rule) {
	w, ok := l.workloads[workload]
	if rule = rule.normal(); !ok || w.rule == rule {
		return
	}
	w.rule = rule
	l.history++
	for _, of := range l.Revisions() {
		if of.Workload == workload {
			l.refresh(l.revisions[of])
		}
	}
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
	if r.workload.revisions--; r.workload.revisions == 0 {
		delete(l.workloads, of.Workload)
	}
}

// ForgetWorkload drops all revisions of a workload, and its rule.
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
		r.reconsider(r.decide())
		l.tidy(r)
	}
}

// tidy forgets a revision of which no failure counts for anything any more.
func (l *Ledger) tidy(r *revision) {
	if r.failing == 0 {
		l.Forget(r.Revision)
	}
}
