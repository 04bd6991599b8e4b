// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"time"

	"k8s.io/utils/clock"
)

// maxIdle is how long a tree is kept that nobody uses, at least; it is felled before
// twice that time has passed. To plant one takes milliseconds, so that a workload that
// comes seldom loses nothing by it.
const maxIdle = 5 * time.Minute

// keeper fells what is idle. A scheduler that has nothing to do is left with no tree,
// no census and no timer.
type keeper struct {
	clock clock.WithDelayedExecution
	// due says that a visit is to come.
	due bool
}

// tendLocked sees to it that a tree that has been planted will not be forgotten.
func (pl *SpreadTree) tendLocked() {
	if !pl.keeper.due {
		pl.keeper.due = true
		pl.keeper.clock.AfterFunc(maxIdle, pl.visit)
	}
}

// visit fells the trees that are idle, and comes again if there are others.
func (pl *SpreadTree) visit() {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.keeper.due = false
	pl.forest.trees.fellIdle()
	if pl.forest.trees.Len() > 0 {
		pl.tendLocked()
		return
	}
	// Nothing shows the census any more: who plants next counts anew.
	pl.forest.countAnew()
}
