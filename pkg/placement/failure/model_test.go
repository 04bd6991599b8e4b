// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"slices"
	"strings"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// plain is the ledger in its plainest form: lists of all that was told, walked anew for every question.
type plain struct {
	defaults            failure.Rule
	ownErrors           bool
	now                 time.Time
	rules               map[failure.Revision]failure.Rule
	failures, successes []told
	pods                []stay
}

// told is a failure of a revision on a node; of a success, only where and when.
type told struct {
	failure.Revision
	node string
	failure.Failure
}

type stay struct {
	failure.Revision
	node, uid         string
	succeeded, failed time.Time
}

func (p *plain) rule(of failure.Revision) failure.Rule {
	if rule, ok := p.rules[of]; ok {
		return rule
	}
	return p.defaults
}

func (p *plain) clamp(at time.Time) time.Time {
	if at.After(p.now) {
		return p.now
	}
	return at
}

func (p *plain) knows(of failure.Revision) bool {
	return slices.ContainsFunc(p.failures, func(f told) bool { return f.Revision == of })
}

// on are the failures of a revision on a node, oldest first.
func (p *plain) on(of failure.Revision, node string) (failures []told) {
	for _, f := range p.failures {
		if f.Revision == of && f.node == node {
			failures = append(failures, f)
		}
	}
	slices.SortFunc(failures, func(a, b told) int {
		switch {
		case !a.At.Equal(b.At):
			return a.At.Compare(b.At)
		case a.Pod+a.Key < b.Pod+b.Key:
			return -1
		default:
			return 1
		}
	})
	return failures
}

func (p *plain) lastSuccess(of failure.Revision, node string) (last time.Time) {
	for _, s := range p.successes {
		if s.Revision == of && s.node == node && s.At.After(last) {
			last = s.At
		}
	}
	return last
}

func (p *plain) succeededBeside(of failure.Revision, node string) bool {
	return slices.ContainsFunc(p.successes, func(s told) bool { return s.Revision == of && s.node != node })
}

func (p *plain) lastFailure(of failure.Revision, node, uid string) (last time.Time) {
	for _, f := range p.on(of, node) {
		if f.Pod == uid {
			last = f.At
		}
	}
	return last
}

// proof is the latest of the pods that are doing well on a node.
func (p *plain) proof(of failure.Revision, node string) (last time.Time) {
	for _, s := range p.pods {
		if s.Revision == of && s.node == node && s.succeeded.After(s.failed) && s.succeeded.After(last) {
			last = s.succeeded
		}
	}
	return last
}

// mark is when failures were last enough to mark a node that was not marked: at the
// moment before, fewer than the threshold were in the window.
func mark(failures []told, rule failure.Rule) (last time.Time) {
	for i, f := range failures {
		before, then := 0, 1
		for _, earlier := range failures[:i] {
			if f.At.Sub(earlier.At) <= rule.Window {
				before++
			}
			if f.At.Sub(earlier.At) < rule.Window {
				then++
			}
		}
		if before < rule.Threshold && then >= rule.Threshold {
			last = f.At
		}
	}
	return last
}

func (p *plain) isRecent(f told) bool { return p.now.Sub(f.At) < p.rule(f.Revision).Window }

func (p *plain) isUnforgiven(f told) bool {
	rule := p.rule(f.Revision)
	vindicated := p.proof(f.Revision, f.node).After(mark(p.on(f.Revision, f.node), rule))
	tooOld := p.now.Sub(f.At) >= max(rule.Window, failure.Memory)
	return !f.At.Before(p.lastSuccess(f.Revision, f.node)) && (p.isRecent(f) || !vindicated && !tooOld)
}

func (p *plain) counts(f told) bool { return p.isRecent(f) || p.isUnforgiven(f) }

// forget is what the ledger does by itself: it lets go of a node's failures together,
// when none counts any more, and of a revision when it has no failures.
func (p *plain) forget() {
	var kept []told
	for _, f := range p.failures {
		if slices.ContainsFunc(p.on(f.Revision, f.node), p.counts) {
			kept = append(kept, f)
		}
	}
	p.failures = kept
	p.successes = slices.DeleteFunc(p.successes, func(s told) bool { return !p.knows(s.Revision) })
	p.pods = slices.DeleteFunc(p.pods, func(s stay) bool { return !p.knows(s.Revision) })
	for of := range p.rules {
		if !p.knows(of) {
			delete(p.rules, of)
		}
	}
}

// tried are the nodes on which a revision was tried.
func (p *plain) tried(of failure.Revision) int {
	var nodes []string
	for _, f := range p.failures {
		if f.Revision == of {
			nodes = append(nodes, f.node)
		}
	}
	for _, s := range p.successes {
		if s.Revision == of {
			nodes = append(nodes, s.node)
		}
	}
	for _, s := range p.pods {
		if s.Revision == of {
			nodes = append(nodes, s.node)
		}
	}
	slices.Sort(nodes)
	return len(slices.Compact(nodes))
}

// isMost reports whether such failures of a revision show on most of its nodes.
func (p *plain) isMost(of failure.Revision, such func(told) bool) bool {
	var nodes []string
	for _, f := range p.failures {
		if f.Revision == of && p.counts(f) && such(f) {
			nodes = append(nodes, f.node)
		}
	}
	slices.Sort(nodes)
	shown := len(slices.Compact(nodes))
	return p.ownErrors && shown >= 2 && 2*shown > p.tried(of)
}

// class is what a kind is before the brackets.
func class(kind string) string {
	before, _, _ := strings.Cut(kind, "(")
	return before
}

func (p *plain) isOwn(f told) bool {
	alone := func(kind string) bool { return p.isMost(f.Revision, func(o told) bool { return o.Kind == kind }) }
	return alone(f.Kind) || p.isMost(f.Revision, func(o told) bool { return class(o.Kind) == class(f.Kind) && !alone(o.Kind) })
}

// blamed is how many recent failures are not the workload's own.
func (p *plain) blamed(of failure.Revision, node string) (n int) {
	for _, f := range p.on(of, node) {
		if p.isRecent(f) && !p.isOwn(f) {
			n++
		}
	}
	return n
}

// isMarked reports whether a node is to blame.
func (p *plain) isMarked(of failure.Revision, node string) bool {
	return p.blamed(of, node) >= p.rule(of).Threshold && (!p.ownErrors || p.tried(of) >= 2)
}

func (p *plain) record(of failure.Revision, node string) (r placement.Record) {
	for _, f := range p.on(of, node) {
		if p.isRecent(f) {
			r.Failures++
		}
		if p.isUnforgiven(f) {
			r.Unforgiven++
		}
	}
	rule := p.rule(of)
	switch blamed := p.blamed(of, node); {
	case blamed >= rule.Threshold:
		r.Failures = blamed
	case r.Failures >= rule.Threshold:
		r.Failures = rule.Threshold
	}
	last, success := mark(p.on(of, node), rule), p.lastSuccess(of, node)
	r.Proven = p.proof(of, node).After(last) || success.After(last) && p.now.Sub(success) < rule.Window
	for _, s := range p.pods {
		if s.Revision == of && s.node == node && s.succeeded.IsZero() && s.failed.IsZero() {
			r.Unproven++
		}
	}
	return r
}

func (p *plain) advance(now time.Time) { p.now = now; p.forget() }

func (p *plain) setRule(of failure.Revision, rule failure.Rule) {
	if p.knows(of) {
		p.rules[of] = rule
		p.forget()
	}
}

func (p *plain) fail(of failure.Revision, node string, under failure.Rule, f failure.Failure) (first bool) {
	f.At = p.clamp(f.At)
	if p.now.Sub(f.At) >= under.Window {
		return false
	}
	p.setRule(of, under)
	first = !p.knows(of)
	p.rules[of] = under
	p.add(told{of, node, f})
	for len(p.on(of, node)) > max(64, 2*under.Threshold) {
		oldest := p.on(of, node)[0]
		p.failures = slices.DeleteFunc(p.failures, func(f told) bool { return f == oldest })
	}
	for i := range p.pods {
		if s := &p.pods[i]; s.Revision == of && s.node == node && s.uid == f.Pod {
			s.failed = p.lastFailure(of, node, f.Pod)
		}
	}
	p.forget()
	return first
}

// add keeps the earlier of two failures that are the same.
func (p *plain) add(f told) {
	for i, old := range p.failures {
		if old.Revision == f.Revision && old.node == f.node && old.Pod == f.Pod && old.Key == f.Key {
			if f.At.Before(old.At) || f.At.Equal(old.At) && f.Kind < old.Kind {
				p.failures[i] = f
			}
			return
		}
	}
	p.failures = append(p.failures, f)
}

func (p *plain) find(of failure.Revision, node, uid string) int {
	return slices.IndexFunc(p.pods, func(s stay) bool { return s.Revision == of && s.node == node && s.uid == uid })
}

func (p *plain) place(of failure.Revision, node, uid string) {
	if p.knows(of) && p.find(of, node, uid) < 0 {
		p.pods = append(p.pods, stay{Revision: of, node: node, uid: uid, failed: p.lastFailure(of, node, uid)})
	}
	p.forget()
}

func (p *plain) gone(of failure.Revision, node, uid string) {
	if i := p.find(of, node, uid); i >= 0 {
		p.pods = slices.Delete(p.pods, i, i+1)
	}
	p.forget()
}

func (p *plain) succeed(of failure.Revision, node, uid string, at time.Time) {
	at = p.clamp(at)
	p.successes = append(p.successes, told{of, node, failure.Failure{At: at}})
	if i := p.find(of, node, uid); i >= 0 && at.After(p.pods[i].succeeded) {
		p.pods[i].succeeded = at
	}
	p.forget()
}

// forgive forgets the failures on a node up to a time.
func (p *plain) forgive(node string, until time.Time) {
	p.failures = slices.DeleteFunc(p.failures, func(f told) bool { return f.node == node && !f.At.After(until) })
	p.forget()
}

// erase forgets what is of some revision and node.
func (p *plain) erase(is func(of failure.Revision, node string) bool) {
	p.failures = slices.DeleteFunc(p.failures, func(f told) bool { return is(f.Revision, f.node) })
	p.successes = slices.DeleteFunc(p.successes, func(s told) bool { return is(s.Revision, s.node) })
	p.pods = slices.DeleteFunc(p.pods, func(s stay) bool { return is(s.Revision, s.node) })
	p.forget()
}
