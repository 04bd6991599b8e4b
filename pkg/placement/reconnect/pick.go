// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reconnect

import "time"

// Strategy is which of a pod and its replacement stays when the pod's node is back.
type Strategy string

// The strategies.
const (
	KeepOriginal    Strategy = "Original"
	KeepReplacement Strategy = "Replacement"
	// KeepLongestRunning keeps the one that started first; where neither has, it is KeepBestPlaced.
	KeepLongestRunning Strategy = "LongestRunning"
	// KeepBestPlaced keeps the one that leaves less misplaced.
	KeepBestPlaced Strategy = "BestPlaced"
)

// Candidate is one of the two.
type Candidate struct {
	// Revision counts up.
	Revision int64
	Running  bool
	// Started is zero for one that has not.
	Started time.Time
	// Misplaced is how many pods are misplaced if this one stays, by level.
	Misplaced []int64
}

// Pick reports whether the replacement stays, and not the original. Of two revisions the newer one always does (vector NV17).
func Pick(s Strategy, original, replacement Candidate) bool {
	if original.Revision != replacement.Revision {
		return replacement.Revision > original.Revision
	}
	switch s {
	case KeepOriginal:
		return false
	case KeepReplacement:
		return true
	case KeepLongestRunning:
		if o, r := original.Started, replacement.Started; !o.IsZero() || !r.IsZero() {
			return o.IsZero() || !r.IsZero() && r.Before(o)
		}
	case KeepBestPlaced:
	}
	return better(replacement.Misplaced, original.Misplaced) && (replacement.Running || !original.Running)
}

// better reports that fewer pods are misplaced, by level.
func better(a, b []int64) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
