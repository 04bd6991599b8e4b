// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/pkg/placement/stagger"
)

// maxLifetime bounds how long nodes run, and with it how many dates there are.
const maxLifetime = 366 * 24 * time.Hour

// Options are what a Controller goes by.
type Options struct {
	// Nodes selects those that get ends.
	Nodes labels.Selector
	// Schedule is when nodes may end.
	Schedule stagger.Schedule
	// Rule is for how long they run, and how many of a domain end at once.
	Rule stagger.Rule
	// Domain is the label of which nodes with one value are a domain.
	Domain string
	// DrainFor is for how long the pods of a node are waited for until it is left to be rebooted.
	DrainFor time.Duration
	// Schedulers are those whose pods are waited for, by schedulerName.
	Schedulers []string
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	for _, d := range []struct {
		what        string
		d           time.Duration
		least, most time.Duration
	}{
		{"a node runs at most", o.Rule.Lifetime, time.Hour, maxLifetime},
		{"a node runs at least", o.Rule.Least, 0, o.Rule.Lifetime},
		{"the pods of a node are waited for", o.DrainFor, time.Minute, 24 * time.Hour},
	} {
		if d.d < d.least || d.d > d.most {
			return fmt.Errorf("%s is no time for which %s: use %s to %s", d.d, d.what, d.least, d.most)
		}
	}
	if o.Rule.PerDomain < 1 || o.Rule.PerDomain > 1000 {
		return fmt.Errorf("%d is no bound of the nodes of a domain that end at once: use 1 to 1000", o.Rule.PerDomain)
	}
	return nil
}
