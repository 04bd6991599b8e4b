// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"container/list"
	"slices"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// entry is what is known of one revision on one node: facts, and what follows from
// them, which review and settle keep true.
type entry struct {
	of   *revision
	node string

	// The facts. failures are in order, and are kept as a whole or not at all, unless
	// there are too many: which of them rose to the threshold follows from all of them.
	// The slice is replaced and never written to.
	failures  []Failure
	succeeded time.Time
	pods      map[string]pod // nil before the first one: most entries have none for most of the time

	// What concerns the revision's other nodes: the kinds of the failures that still
	// count for something, and the classes of those that are not the workload's own by
	// themselves, in order; and whether the revision was tried here.
	shown, classes []string
	tried          bool
	// vindicated says that a pod which was proven before is still doing well.
	vindicated bool

	record placement.Record
	// since is when the node was marked, zero if it is not: the failures that it is
	// blamed for rose to the threshold.
	since time.Time

	// version is when record last changed, and place where that is in the revision's
	// list; nil before the first time.
	version uint64
	element *list.Element

	// due is the next time at which something changes by itself; position is the
	// entry's in the ledger's agenda, -1 if there is no such time.
	due      time.Time
	position int
}

// pod is what has become of a pod that is on the node: when it last succeeded and
// failed, zero if it has not.
type pod struct{ succeeded, failed time.Time }

func (p pod) isUnproven() bool { return p.succeeded.IsZero() && p.failed.IsZero() }

// proof is since when the pod has been doing well, zero if it is not. A failure of the
// same moment weighs more: API times are in whole seconds.
func (p pod) proof() (since time.Time) {
	if p.succeeded.After(p.failed) {
		return p.succeeded
	}
	return since
}

// lastFailure is when a pod last failed, zero if it has not.
func (e *entry) lastFailure(uid string) (last time.Time) {
	for _, f := range e.failures {
		if f.Pod == uid {
			last = f.At
		}
	}
	return last
}

// place notes a pod that is on the node.
func (e *entry) place(uid string) {
	if e.pods == nil {
		e.pods = make(map[string]pod)
	}
	e.pods[uid] = pod{failed: e.lastFailure(uid)}
}

// gone notes a pod that is not on the node any more.
func (e *entry) gone(uid string) {
	if delete(e.pods, uid); len(e.pods) == 0 {
		e.pods = nil
	}
}

// successes is 1 if anything has succeeded, and 0 otherwise.
func (e *entry) successes() int {
	if e.succeeded.IsZero() {
		return 0
	}
	return 1
}

// lastProof is the latest proof of the pods that are on the node.
func (e *entry) lastProof() (last time.Time) {
	for _, p := range e.pods {
		if proof := p.proof(); proof.After(last) {
			last = proof
		}
	}
	return last
}

// isUnforgiven reports whether a failure is later than all successes, and not yet too
// long ago to matter.
func (e *entry) isUnforgiven(f Failure) bool {
	rule, now := e.of.rule, e.of.in.now
	switch {
	case f.At.Before(e.succeeded):
		return false
	case rule.isRecent(f.At, now):
		return true
	default:
		return !e.vindicated && now.Sub(f.At) < rule.memory()
	}
}

// isVindicated reports whether a pod that was proven before the failures is still doing
// well: it goes on succeeding, and forgives what has left the window, as long as no
// number of failures that marks a node has come between.
func (e *entry) isVindicated() bool { return e.lastProof().After(e.lastMark()) }

// lastMark is when the failures last rose to the threshold, whosever they are: what is
// remembered must not depend on what is whose, which depends on what is remembered.
func (e *entry) lastMark() (last time.Time) {
	if len(e.failures) < e.of.rule.Threshold {
		return last
	}
	times := make([]time.Time, len(e.failures))
	for i, f := range e.failures {
		times[i] = f.At
	}
	return e.of.rule.lastMark(times)
}

// settle forgets what counts for nothing any more, and finds what concerns other nodes.
func (e *entry) settle() {
	e.shown = nil
	if len(e.failures) > 0 {
		rule, now := e.of.rule, e.of.in.now
		e.vindicated = e.isVindicated()
		counts := false
		for _, f := range e.failures {
			if !rule.isRecent(f.At, now) && !e.isUnforgiven(f) {
				continue
			}
			counts = true
			if i, found := slices.BinarySearch(e.shown, f.Kind); !found {
				e.shown = slices.Insert(e.shown, i, f.Kind)
			}
		}
		if !counts {
			e.failures = nil
			e.of.in.history++
		}
	}
	e.tried = len(e.failures) > 0 || len(e.pods) > 0 || !e.succeeded.IsZero()
}

// judge makes the record from the facts, and from which kinds are the workload's own.
func (e *entry) judge() (record placement.Record, since time.Time) {
	rule, now := e.of.rule, e.of.in.now
	blamed := 0
	for _, f := range e.failures {
		if rule.isRecent(f.At, now) {
			record.Failures++
			if !e.of.isOwn(f.Kind) {
				blamed++
			}
		}
		if e.isUnforgiven(f) {
			record.Unforgiven++
		}
	}
	if record.Failures >= rule.Threshold {
		record.Failures = max(rule.Threshold, blamed)
	}
	if blamed >= rule.Threshold && e.of.isComparable() {
		since = e.blamedSince()
	}
	mark := e.lastMark()
	record.Proven = e.lastProof().After(mark) || e.succeeded.After(mark) && rule.isRecent(e.succeeded, now)
	for _, p := range e.pods {
		if p.isUnproven() {
			record.Unproven++
		}
	}
	return record, since
}

// blamedSince is when the failures that are not the workload's own rose to the
// threshold.
func (e *entry) blamedSince() time.Time {
	times := make([]time.Time, 0, len(e.failures))
	for _, f := range e.failures {
		if !e.of.isOwn(f.Kind) {
			times = append(times, f.At)
		}
	}
	if since := e.of.rule.lastMark(times); !since.IsZero() {
		return since
	}
	// The clock has gone back to before two that never met.
	return times[len(times)-1]
}

// next is the first time to come at which the entry changes by itself.
func (e *entry) next() (first time.Time) {
	rule, now := e.of.rule, e.of.in.now
	consider := func(at time.Time) {
		if at.After(now) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, f := range e.failures {
		consider(f.At.Add(rule.Window))
		consider(f.At.Add(rule.memory()))
	}
	if !e.succeeded.IsZero() {
		consider(e.succeeded.Add(rule.Window))
	}
	return first
}
