// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"time"

	"k8s.io/utils/clock"
)

// maxIdle is how long a tally, a topology or answers of filters are kept that nobody uses, at
// least; they are evicted before twice that time has passed. To make one takes milliseconds
// at most, so that a workload that comes seldom loses nothing by it.
const maxIdle = 5 * time.Minute

// idle evicts what is not used. A scheduler that has nothing to do is left with no tally,
// no index and no timer.
type idle struct {
	clock clock.WithDelayedExecution
	// due says that a visit is to come.
	due bool
}

// watchLocked sees to it that what is kept will be visited.
func (pl *SpreadTree) watchLocked() {
	if !pl.idle.due {
		pl.idle.due = true
		pl.idle.clock.AfterFunc(maxIdle, pl.visit)
	}
}

// visit evicts what was not used since the last one, and comes again if anything is left.
func (pl *SpreadTree) visit() {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.idle.due = false
	t := pl.trees
	left := t.topologies.EvictIdle() + t.filtered.EvictIdle() + t.costs.EvictIdle()
	for workload, ofWorkload := range t.tallies {
		if ofWorkload.EvictIdle() == 0 {
			delete(t.tallies, workload)
		}
	}
	if left+len(t.tallies) > 0 {
		pl.watchLocked()
		return
	}
	// Nothing shows the index any more: the next pod has it counted anew. A topology that was looked at would keep it, and with it all
	// pods and nodes as they were.
	t.reset()
	pl.looked.Clear()
}
