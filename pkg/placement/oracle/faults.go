// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// The standings, best first. Records and readiness decide them; what is of a lower
// one comes first, whatever the pods on it.
const (
	free = iota
	onTrial
	branchFaulty
	nodeFaulty
	unready
)

// threshold is how many failures mark a node.
func threshold(rule placement.Faults) int { return max(1, rule.Threshold) }

// standing of a node: unready nodes last of all, before them those with as many
// failures as mark a node. With half-open, a node on which there were failures and no
// success since has its one pod to try, and is on trial until it is known how that ends.
func (c candidate) standing() int {
	switch {
	case c.Unready:
		return unready
	case c.Failures >= threshold(c.rule):
		return nodeFaulty
	case c.rule.HalfOpen && c.Unforgiven > 0 && !c.Proven && c.Unproven > 0:
		return onTrial
	}
	return free
}

// failures are those that put one faulty node behind another.
func (c candidate) failures() int64 {
	if c.Failures < threshold(c.rule) {
		return 0
	}
	return int64(c.Failures)
}

// unforgiven failures break ties, with half-open.
func (c candidate) unforgiven() int64 {
	if !c.rule.HalfOpen {
		return 0
	}
	return int64(c.Unforgiven)
}

// standing of a branch: that of the best it can offer, or its own as a whole where
// that is worse.
func (b branch) standing() int {
	best := unready
	below := slices.IndexFunc(b.below, func(f fork) bool { return f.decides(b.nodes) })
	if below < 0 {
		for _, c := range onlyFeasible(b.nodes) {
			best = min(best, c.standing())
		}
		return max(best, b.asAWhole())
	}
	for _, sub := range b.below[below].offering(b.nodes) {
		best = min(best, sub.standing())
	}
	return max(best, b.asAWhole())
}

// asAWhole is what the failures of all ready nodes of a branch say of it, with
// half-open: nothing if any node is proven, or if those with failures are not most of
// the nodes that were tried. When two have failed, what is out on trial counts as if
// it had failed as well.
func (b branch) asAWhole() int {
	ready := slices.DeleteFunc(slices.Clone(b.nodes), func(c candidate) bool { return c.Unready })
	if len(ready) == 0 || !ready[0].rule.HalfOpen {
		return free
	}
	count := func(is func(c candidate) bool) int {
		return len(ready) - len(slices.DeleteFunc(slices.Clone(ready), is))
	}
	var failures, unforgiven int
	var unproven int64
	for _, c := range ready {
		failures += c.Failures
		unforgiven += c.Unforgiven
		unproven += c.Unproven
	}
	tried := count(func(c candidate) bool {
		return c.Failures > 0 || c.Unforgiven > 0 || c.Proven || c.Unproven > 0 || c.Tally.Revision > 0
	})
	most := func(nodes int) bool { return nodes > tried-nodes }
	unforgiving := count(func(c candidate) bool { return c.Unforgiven > 0 })
	enough := threshold(ready[0].rule)
	switch {
	case count(func(c candidate) bool { return c.Proven }) > 0:
	case failures >= enough && most(count(func(c candidate) bool { return c.Failures > 0 })):
		return branchFaulty
	case unproven == 0:
	case unforgiven >= enough && most(unforgiving), unforgiving >= 2 && int64(unforgiven)+unproven >= int64(enough):
		return onTrial
	}
	return free
}

// unforgiven sums up the ready nodes.
func (b branch) unforgiven() (n int64) {
	for _, c := range b.nodes {
		if !c.Unready {
			n += c.unforgiven()
		}
	}
	return n
}
