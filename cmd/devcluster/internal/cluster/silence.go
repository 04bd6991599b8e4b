// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "time"

const (
	// renewalsPerSecond is what all leases together may cost. Kubernetes' own ten
	// seconds a node would be five hundred writes a second on 5,000 nodes, more than
	// the scheduler under test can make.
	renewalsPerSecond = 20
	minRenewal        = 5 * time.Second
	// graceRenewals is how many renewals may be missed before a node counts as silent.
	graceRenewals = 4
)

// silence returns how long a silent node stays Ready and the life of a node's lease
// in seconds, of which kwok renews at a quarter. A grace of 0 is chosen from the
// number of nodes; one that is given decides how often leases are renewed.
func silence(nodes int, grace time.Duration) (time.Duration, uint) {
	if grace == 0 {
		renewal := max(minRenewal, time.Duration(nodes)*time.Second/renewalsPerSecond)
		grace = (graceRenewals * renewal).Round(time.Second)
	}
	return grace, uint(max(4, grace/time.Second))
}
