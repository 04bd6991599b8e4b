// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package deletioncost

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Which pods get another cost.
const (
	// Repair is those of ReplicaSets of which some pod has a cost of ours.
	Repair = "Repair"
	// Backfill is also those of ReplicaSets none of whose pods has one.
	Backfill = "Backfill"
)

// Options are what a Controller goes by.
type Options struct {
	// Mode is Repair or Backfill.
	Mode string
	// Schedulers are the schedulerNames of the pods that are looked at, and Namespaces selects their namespaces.
	Schedulers []string
	Namespaces labels.Selector
	// Quiet is for how long the pods of a ReplicaSet must have been the same.
	Quiet time.Duration
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	if o.Mode != Repair && o.Mode != Backfill {
		return fmt.Errorf("%q is no mode: use %s or %s", o.Mode, Repair, Backfill)
	}
	if o.Quiet < 0 || o.Quiet > 24*time.Hour {
		return fmt.Errorf("%s is no time that pods must have been the same: use 0s to 24h", o.Quiet)
	}
	return nil
}
