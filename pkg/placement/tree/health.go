// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "github.com/espalier-scheduler/espalier/pkg/placement"

// health is how far readiness and the records put a node or a branch behind its
// siblings, whatever the pods on them: lower is better.
//
// The health of a branch is that of its best node, or worse if the records of all its
// nodes together say so.
type health uint8

const (
	free health = iota
	// onTrial: failures that nothing has made good yet, and a pod whose end is still out.
	onTrial
	// faultyAsAWhole: failures all over a branch. It comes before nodes that are
	// faulty themselves, because it may have some that nothing is known of.
	faultyAsAWhole
	faulty
	// unready comes after every faulty node, see placement.Node.
	unready
)

func (s health) String() string {
	return [...]string{free: "healthy", onTrial: "on trial", faultyAsAWhole: "faulty as a whole", faulty: "faulty", unready: "not ready"}[s]
}

// noneHealthy reports that a branch has nothing but faulty and unready nodes to offer.
func (s health) noneHealthy() bool { return s >= faulty }

// verdict is what a rule makes of a node's record.
type verdict struct {
	health health
	// failures are those of a node that has enough to be faulty, else 0;
	// unforgiven those that break ties, 0 without half-open.
	failures, unforgiven int32
}

// judge returns the verdict on a node. One that is not ready stands behind all that are,
// which mask sees to; among its like it does not matter whether it is on trial.
func judge(rule *placement.Faults, r *placement.Record, isUnready bool) verdict {
	var v verdict
	if *r == (placement.Record{}) {
		return v
	}
	if rule.HalfOpen {
		v.unforgiven = int32(r.Unforgiven)
	}
	if r.Failures >= rule.Threshold {
		v.failures = int32(r.Failures)
	}
	switch {
	case isUnready:
	case v.failures > 0:
		v.health = faulty
	case v.unforgiven > 0 && !r.Proven && r.Unproven > 0:
		v.health = onTrial
	}
	return v
}

// history is what the records of a branch's ready nodes add up to. It is empty
// without half-open, when nothing asks for it.
type history struct {
	failures, unforgiven, unproven int32
	// failed and unforgiving count the nodes with failures and unforgiven ones, proven
	// those that are proven, and tried those that the revision has been on at all.
	failed, unforgiving, proven, tried int32
}

// historyOf returns the part of a ready node.
func historyOf(e *entry) history {
	return history{
		failures:    int32(e.Failures),
		unforgiven:  int32(e.Unforgiven),
		unproven:    int32(e.Unproven),
		failed:      oneIf(e.Failures > 0),
		unforgiving: oneIf(e.Unforgiven > 0),
		proven:      oneIf(e.Proven),
		tried:       oneIf(e.Record != (placement.Record{}) || e.Revision > 0),
	}
}

func oneIf(is bool) int32 {
	if is {
		return 1
	}
	return 0
}

func (h *history) add(o *history, by int32) {
	h.failures += by * o.failures
	h.unforgiven += by * o.unforgiven
	h.unproven += by * o.unproven
	h.failed += by * o.failed
	h.unforgiving += by * o.unforgiving
	h.proven += by * o.proven
	h.tried += by * o.tried
}

// asAWhole is the health that the failures of all nodes below give a branch. They
// must be on more than half of those tried: one bad node, while the pods on the
// others are still starting, is no bad zone.
//
// When two nodes have failed and none has succeeded, the branch waits for what is out
// already, if that is enough to make it faulty. Otherwise what replaces the first pods
// that fail would go there too, as long as the news of the fifth is on its way.
func (h *history) asAWhole(threshold int) health {
	enough := int32(threshold)
	switch {
	case h.proven > 0:
		return free
	case h.failures >= enough && 2*h.failed > h.tried:
		return faultyAsAWhole
	case h.unproven == 0:
		return free
	case h.unforgiven >= enough && 2*h.unforgiving > h.tried, h.unforgiving >= 2 && h.unforgiven+h.unproven >= enough:
		return onTrial
	}
	return free
}
