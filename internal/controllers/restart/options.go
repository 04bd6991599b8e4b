// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/pkg/placement/reschedule"
)

// Enabled is the mode in which pods are replaced unless their policies say that they are not; with move.ByPolicy they are where these say so.
const Enabled = "Enabled"

// Options are what a Controller goes by.
type Options struct {
	// Mode is Enabled or move.ByPolicy.
	Mode string
	// Schedulers are those whose records are read, by schedulerName, and Records is the namespace of these.
	Schedulers []string
	Records    string
	// Namespaces selects those whose pods are looked at.
	Namespaces labels.Selector
	// AtOnce bounds the Moves that have not ended, of all reasons.
	AtOnce int
	// Policy says when the next attempt of a Deployment is made.
	Policy reschedule.Policy
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	if o.Mode != Enabled && o.Mode != move.ByPolicy {
		return fmt.Errorf("%q is no mode: use %s or %s", o.Mode, Enabled, move.ByPolicy)
	}
	p := &o.Policy
	switch p.Function {
	case reschedule.Constant, reschedule.Exponential, reschedule.Fibonacci:
	default:
		return fmt.Errorf("%q is no function of delays: use %s, %s or %s", p.Function, reschedule.Constant, reschedule.Exponential, reschedule.Fibonacci)
	}
	for _, d := range []struct {
		what  string
		d     time.Duration
		least time.Duration
	}{{"first delay", p.Delay, time.Second}, {"longest delay", p.MaxDelay, p.Delay}, {"interval", p.Interval, time.Minute}} {
		// Older attempts are not remembered.
		if d.d < d.least || d.d > move.Remembered {
			return fmt.Errorf("%s is no %s: use %s to %s", d.d, d.what, d.least, move.Remembered)
		}
	}
	if p.Attempts < 0 || p.Attempts > 1000 {
		return fmt.Errorf("%d is no number of attempts: use 1 to 1000, or 0 for any", p.Attempts)
	}
	return move.ValidateAtOnce(o.AtOnce)
}
