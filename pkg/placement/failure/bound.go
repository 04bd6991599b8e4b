// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"slices"
	"strings"
)

// Failures is how many failures there are in the ledger.
func (l *Ledger) Failures() int { return l.failures }

// FailuresOf is how many there are of a revision.
func (l *Ledger) FailuresOf(of Revision) int {
	if r, ok := l.revisions[of]; ok {
		return r.failures
	}
	return 0
}

// Shorten leaves of a revision, on each node, the failures that say something: see Telling.
func (l *Ledger) Shorten(of Revision) {
	l.reduce(of, func(e *entry) []Failure {
		if len(e.failures) <= e.of.rule.Threshold {
			return e.failures
		}
		return Telling(e.failures, e.of.rule.Threshold, e.of.isOwn)
	})
}

// Keep forgets where a revision failed but for some nodes.
func (l *Ledger) Keep(of Revision, nodes map[string]bool) {
	l.reduce(of, func(e *entry) []Failure {
		if nodes[e.node] {
			return e.failures
		}
		return nil
	})
}

// Entries is how many pairs of a revision and a node the ledger knows something of.
func (l *Ledger) Entries() int { return l.entries }

// Trim forgets where a revision has not failed and has no pods, but for the nodes on which it succeeded last, twice as many
// as it has failed on: so many are enough to say that an error is not its own. See Captured.History.
func (l *Ledger) Trim(of Revision) {
	r, ok := l.revisions[of]
	if !ok {
		return
	}
	var sound, rest []*entry
	for _, e := range r.entries {
		switch {
		case len(e.failures) > 0 || len(e.pods) > 0:
		case e.succeeded.IsZero():
			rest = append(rest, e)
		default:
			sound = append(sound, e)
		}
	}
	slices.SortFunc(sound, func(a, b *entry) int {
		return cmp.Or(b.succeeded.Compare(a.succeeded), strings.Compare(a.node, b.node))
	})
	rest = append(rest, sound[min(len(sound), 2*r.failing):]...)
	for _, e := range rest {
		r.drop(e)
	}
	if len(rest) > 0 {
		r.decide()
	}
}

// reduce takes failures away from all nodes of a revision. What follows for the revision is
// found once, when all is done: to find it for each node could look at all nodes each time.
func (l *Ledger) reduce(of Revision, keep func(*entry) []Failure) {
	r, ok := l.revisions[of]
	if !ok {
		return
	}
	var reduced []*entry
	for _, e := range r.entries {
		if kept := keep(e); len(kept) < len(e.failures) {
			r.change(e, func() { e.failures = kept })
			reduced = append(reduced, e)
		}
	}
	if len(reduced) == 0 {
		return
	}
	r.decide()
	for _, e := range reduced {
		r.review(e)
		l.schedule(e)
	}
	l.history++
	l.tidy(r)
}
