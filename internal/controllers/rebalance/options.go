// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/internal/controllers/move"
)

// What is done about pods that are misplaced, unless their policies say that nothing is; with move.ByPolicy Moves are made where they say so.
const (
	// DryRun says in an event of each Deployment which pod would be replaced. No policy has one replaced then.
	DryRun = "DryRun"
	// Enabled makes Moves.
	Enabled = "Enabled"
)

// Options are what a Controller goes by.
type Options struct {
	// Mode is DryRun, Enabled or move.ByPolicy.
	Mode string
	// Schedulers are the schedulerNames of the pods that are looked at.
	Schedulers []string
	// Namespaces selects those whose Deployments are looked at.
	Namespaces labels.Selector
	// AtOnce bounds the Moves that have not ended, of all reasons, and PerNode those that leave one node. Of one Deployment there
	// is one at a time.
	AtOnce, PerNode int
	// PerHour bounds the Moves that are made for this reason in an hour.
	PerHour int
	// Quiet is how long a Deployment must have been ready and the same, and NodeReady how long a node must have been ready to be
	// moved to. A pod that is younger than PodAge is not moved.
	Quiet, NodeReady, PodAge time.Duration
	// Windows are when Moves are made; none for always.
	Windows []Window
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	if o.Mode != DryRun && o.Mode != Enabled && o.Mode != move.ByPolicy {
		return fmt.Errorf("%q is no mode: use %s, %s or %s", o.Mode, DryRun, Enabled, move.ByPolicy)
	}
	for _, bound := range []struct {
		what    string
		n, most int
	}{{"Moves at once", o.AtOnce, 1000}, {"Moves at once from one node", o.PerNode, 1000}, {"Moves in an hour", o.PerHour, 10_000}} {
		if bound.n < 1 || bound.n > bound.most {
			return fmt.Errorf("%d is no bound of %s: use 1 to %d", bound.n, bound.what, bound.most)
		}
	}
	for _, d := range []struct {
		what string
		d    time.Duration
	}{{"a Deployment must be quiet", o.Quiet}, {"a node must be ready", o.NodeReady}, {"a pod must have lived", o.PodAge}} {
		if d.d < 0 || d.d > 24*time.Hour {
			return fmt.Errorf("%s is no time that %s: use 0s to 24h", d.d, d.what)
		}
	}
	return nil
}
