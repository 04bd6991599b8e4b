// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

const (
	// breath is the least time between two looks at what has changed: in a rollout that
	// fails everywhere every pod changes something.
	breath = 100 * time.Millisecond
	// sweeping is the time between two looks for what has gone unnoticed.
	sweeping = 30 * time.Second
	// absence is how long a revision must have no pods to be forgotten, or its window
	// if that is longer: a Job that backs off has none for minutes.
	absence = 10 * time.Minute
)

// keepTime looks at what has changed, and at what time has brought, until the context
// ends.
func (c *Cache) keepTime(ctx context.Context) {
	for {
		next := c.tick()
		// Whatever is new in this moment is looked at after it.
		if !c.sleep(ctx, breath, nil) {
			return
		}
		wait := max(next.Sub(c.Clock.Now()), 0)
		if !c.sleep(ctx, wait, c.woken) {
			return
		}
	}
}

// sleep waits for a time, or to be woken. It is false if the context has ended.
func (c *Cache) sleep(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	timer := c.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-woken:
	}
	return true
}

// tick does what is due and tells people of what has come of it. It returns when it
// is to be called again, if nothing happens.
func (c *Cache) tick() (next time.Time) {
	now := c.lock()
	next = now.Add(sweeping)
	soon := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	c.prove(now, soon)
	if now.Sub(c.swept) >= sweeping {
		c.swept = now
		c.sweep(now)
	}
	for of := range c.tracked {
		if !c.ledger.Knows(of) {
			delete(c.tracked, of)
		}
	}
	c.bound()
	for uid, t := range c.podStates {
		if c.tracked[t.of] == nil {
			delete(c.podStates, uid)
		}
	}
	own := c.lookAtOwnErrors()
	events := c.lookAtMarks(now, soon)
	events = append(events, c.lookAtSuspects(now, soon)...)
	if at, ok := c.ledger.Next(); ok {
		soon(at)
	}
	c.mu.Unlock()

	c.logOwnErrors(own)
	c.emit(events)
	token(c.unwritten)
	return next
}

// prove lets the pods prove their nodes that have been ready for long enough, and
// gives up those that have vanished without having ended.
func (c *Cache) prove(now time.Time, soon func(time.Time)) {
	for _, t := range c.podStates {
		switch {
		case !t.leaving.IsZero() && !t.leaving.After(now):
			c.gone(t)
			continue
		case !t.proof.IsZero() && !t.proof.After(now):
			c.ledger.Succeed(t.of, t.node, t.uid, t.proof)
			t.proof = time.Time{}
		}
		soon(t.leaving)
		soon(t.proof)
	}
}

// sweep forgets the revisions that have long had no pods, and at the next time those of
// which there will be none. Other ends are not watched: whatever owns pods could be of
// any kind.
func (c *Cache) sweep(now time.Time) {
	c.dropPending()
	for of, t := range c.tracked {
		limit := max(absence, c.ledger.Rule(of).Window)
		if t.orphaned {
			limit = sweeping
		}
		switch {
		case c.hasPods(of, t):
			t.absent = time.Time{}
		case t.absent.IsZero():
			t.absent = now
		case now.Sub(t.absent) >= limit:
			c.ledger.Forget(of)
		}
	}
}

// hasPods reports whether there are pods of a revision that have not ended, with a node
// or without.
func (c *Cache) hasPods(of failure.Revision, t *tracked) bool {
	objects, err := c.pods.GetIndexer().ByIndex(familyIndex+c.options.SchedulerName, t.family)
	if err != nil {
		return true
	}
	for _, obj := range objects {
		if pod, ok := obj.(*corev1.Pod); ok && revisionOf(c.identifier.Identify(pod)) == of {
			return true
		}
	}
	return false
}
