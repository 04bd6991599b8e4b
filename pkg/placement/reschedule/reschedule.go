// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reschedule says when a pod that has failed where it was may be tried elsewhere, and how often: as Nomad's reschedule
// policy does, of which the rules are re-tested here and not copied.
package reschedule

import "time"

// Function is how the delay grows from one time to the next.
type Function string

// The functions.
const (
	Constant    Function = "Constant"
	Exponential Function = "Exponential" // twice the last
	Fibonacci   Function = "Fibonacci"   // the last two together
)

// Policy is when a failed pod is tried elsewhere. The zero value never does.
type Policy struct {
	// Delay is the first one, and that to which a long stable run resets.
	Delay    time.Duration
	Function Function
	// MaxDelay bounds a delay that grows.
	MaxDelay time.Duration
	// Attempts in Interval are allowed. Where Unlimited is set neither counts.
	Attempts  int
	Interval  time.Duration
	Unlimited bool
}

// Event is one time that a pod was tried elsewhere.
type Event struct {
	At time.Time
	// Delay is what was waited before it.
	Delay time.Duration
}

// maxEvents bounds those that are kept of an unlimited policy.
const maxEvents = 5

// Next is when a pod that failed at a time, after some events in their order, is to be tried elsewhere. It is false if it is not to be.
func (p Policy) Next(events []Event, failed time.Time) (at time.Time, ok bool) {
	if !p.Unlimited && p.Attempts < 1 {
		return time.Time{}, false
	}
	delay := p.delay(events, failed)
	if !p.Unlimited && len(events) > 0 {
		if p.recent(events, failed) >= p.Attempts || delay >= p.Interval {
			return time.Time{}, false
		}
	}
	return failed.Add(delay), true
}

// Track returns the events with one more, without those that do not count any more.
func (p Policy) Track(events []Event, failed time.Time) []Event {
	kept := events
	if p.Unlimited {
		kept = kept[max(0, len(kept)-maxEvents):]
	} else {
		kept = kept[len(kept)-p.recent(kept, failed):]
	}
	delay := p.delay(events, failed)
	return append(append([]Event(nil), kept...), Event{failed.Add(delay), delay})
}

// recent counts the events in the interval before a failure. They are the last ones.
func (p Policy) recent(events []Event, failed time.Time) (n int) {
	for _, e := range events {
		if failed.Sub(e.At) < p.Interval {
			n++
		}
	}
	return n
}

// delay is what is waited after a failure.
func (p Policy) delay(events []Event, failed time.Time) time.Duration {
	if len(events) == 0 || p.Function == Constant || p.Function == "" {
		return p.Delay
	}
	last := events[len(events)-1]
	next := 2 * last.Delay
	if p.Function == Fibonacci {
		if len(events) == 1 {
			return p.Delay
		}
		before := events[len(events)-2].Delay
		if next = before + last.Delay; p.MaxDelay > 0 && before >= p.MaxDelay && last.Delay == p.Delay {
			return p.Delay // it was reset
		}
	}
	if p.MaxDelay == 0 || next <= p.MaxDelay {
		return next
	}
	if failed.Sub(last.At) > p.MaxDelay {
		return p.Delay // it was stable for long
	}
	return p.MaxDelay
}
