// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"slices"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// What the plain ledger is told.

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
