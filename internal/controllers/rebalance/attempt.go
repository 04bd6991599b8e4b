// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// attempt is the last Move of a Deployment: the scheduler may have placed the other pod elsewhere than was planned, by rules that are not
// known here. Another Move would be as good, and so on for ever.
type attempt struct {
	generation int64
	// misplaced is how many pods were, by level.
	misplaced []int64
	// until is when the next one may be tried after one that came to nothing.
	until time.Time
}

// rests reports that nothing is tried now.
func (a attempt) rests(now time.Time) bool { return now.Before(a.until) }

// cameToNothing reports that no fewer pods are misplaced than before the attempt, of a Deployment that nobody has changed since.
func (a attempt) cameToNothing(d *appsv1.Deployment, misplaced []int64) bool {
	return a.misplaced != nil && a.generation == d.Generation && slices.Compare(misplaced, a.misplaced) >= 0
}
