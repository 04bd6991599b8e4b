// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import "time"

// Memory is how long a failure can be held against a node on which nothing has
// succeeded since, or the window, if that is longer. The end of some pod or owner is always
// missed: what is held against a node must not outlive its cause for ever.
const Memory = 24 * time.Hour

// Rule says when a node is faulty.
type Rule struct {
	// Threshold is the number of failures that mark a node, from 1 to 1000: what is
	// less or more is taken for the one or the other.
	Threshold int `json:"threshold"`
	// Window is how long a failure is recent, from a second to a day; likewise.
	Window time.Duration `json:"window"`
}

// keepAtLeast is enough to tell bad nodes from worse ones under small thresholds.
const keepAtLeast = 64

// capacity is how many failures of one revision are kept of one node, the newest. Twice
// the threshold tells the node that has just been marked from one that fails all
// the time; beyond that, worse is the same.
func (r Rule) capacity() int { return max(keepAtLeast, 2*r.Threshold) }

// The bounds of rules. They are checked where people give rules, too; but one that is
// read from a record has passed nobody, and without a window nothing would be recent,
// not even what happens now.
const (
	MaxThreshold = 1000
	MinWindow    = time.Second
	MaxWindow    = 24 * time.Hour
)

// Normal is the nearest rule within the bounds.
func (r Rule) Normal() Rule {
	r.Threshold = min(max(1, r.Threshold), MaxThreshold)
	r.Window = min(max(MinWindow, r.Window), MaxWindow)
	return r
}

// isRecent reports whether a failure, or a success, is in the window.
func (r Rule) isRecent(at, now time.Time) bool { return now.Sub(at) < r.Window }

// memory is how long anything is remembered.
func (r Rule) memory() time.Duration { return max(Memory, r.Window) }

// lastMark is when the number of recent failures last rose to the threshold, zero if
// it never did. The times are in order.
func (r Rule) lastMark(times []time.Time) (last time.Time) {
	// The failures before counted are not recent any more when times[i] comes; those
	// before held were not even the moment before, so that a failure that comes as
	// another fades prolongs a mark and does not renew it.
	counted, held := 0, 0
	for i, at := range times {
		for counted < i && !r.isRecent(times[counted], at) {
			counted++
		}
		for held < i && at.Sub(times[held]) > r.Window {
			held++
		}
		if i+1-counted >= r.Threshold && i-held < r.Threshold {
			last = at
		}
	}
	return last
}
