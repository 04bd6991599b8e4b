// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifetime says what the end of a node means for pods: which nodes live long enough for a pod's lease, which of two nodes lives
// longer, and what becomes of a lease that is renewed.
//
// It answers the seed on Treadmill's scheduler, "Application lifetime constraints and reboot awareness".
package lifetime

import (
	"strings"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// allowedLease is how a lease is written.
const allowedLease = "use hours, minutes or seconds, such as 72h or 90m, and 0s for none"

// ParseLease reads for how long a pod wants to stay on its node, as Go writes durations: 72h, 1h30m. 0s is none. The error quotes what
// cannot be read.
func ParseLease(text string) (time.Duration, error) {
	lease, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil: // or it is longer than 292 years
		return 0, syntax.Refuse("no duration", text, allowedLease)
	case lease < 0:
		return 0, syntax.Refuse("negative duration", text, allowedLease)
	}
	return lease, nil
}

// Outlives reports whether a node with an end lives for longer than a lease that begins now. A node whose end is the end of the lease
// does not (TV18). A lease of 0 asks for nothing, and a node without an end, which is the zero time, lives for ever.
func Outlives(end, now time.Time, lease time.Duration) bool {
	return lease <= 0 || end.IsZero() || now.Add(lease).Before(end)
}

// Renewal is what becomes of a pod whose lease is to be renewed.
type Renewal int

const (
	// Extended says that it stays on its node, which lives long enough, and its lease begins anew.
	Extended Renewal = iota
	// Moved says that its node does not live long enough, and that another one that takes it does.
	Moved
	// Kept says that there is no such node. The pod stays where it is with the lease that it has, and is still to be renewed.
	Kept
)

// Renew decides what becomes of a pod whose lease is to be renewed, on a node with an end (TV19). Elsewhere reports whether another node
// takes the pod and lives long enough. It is asked only if the pod's own node does not.
func Renew(end, now time.Time, lease time.Duration, elsewhere func() bool) Renewal {
	switch {
	case Outlives(end, now, lease):
		return Extended
	case elsewhere():
		return Moved
	}
	return Kept
}
