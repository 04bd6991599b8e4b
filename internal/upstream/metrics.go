// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// subsystem is the prefix of our metrics: espalier_.
const subsystem = "espalier"

// What became of a hint. A pod that has one counts twice, when a node is proposed
// and when one is taken; of the others each says why there was none.
const (
	outcomeProposed = "proposed"
	outcomeUsed     = "used"
	outcomeUnused   = "unused"

	outcomeRefused     = "refused"     // no node fits, as was known: the pod was not filtered on all nodes
	outcomeNone        = "none"        // no node fits
	outcomePreassigned = "preassigned" // the pod's node is not the tree's to choose
	outcomeNominated   = "nominated"   // the scheduler tries another node first
	outcomeGroup       = "group"       // the pod is placed with others of its group
	outcomePreferences = "preferences" // scoring heeds those of the pod, and those of running pods about it
	outcomeConfined    = "confined"    // a PreFilter plugin left it some of the nodes
	outcomeError       = "error"       // a filter could not answer
)

var hints = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem,
	Name:      "hints_total",
	Help: "Number of pods by profile and by what became of the node hint. It is proposed, and then used or unused; refused " +
		"because it was known that no node fits; none because no node fits; or the reason for which the pod was filtered and scored on all nodes.",
	StabilityLevel: metrics.ALPHA,
}, []string{"profile", "outcome"})

// fullPathOutcomes are those of a pod that is filtered and scored on all nodes.
var fullPathOutcomes = []string{
	outcomeNone, outcomePreassigned, outcomeNominated, outcomeGroup, outcomePreferences, outcomeConfined, outcomeError, outcomeUnused,
}

var fallbacks = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem,
	Name:      "fallbacks_total",
	Help: "Number of pods that took the full path, by profile and reason: those for which there is no node hint, and unused " +
		"where there was one and the scheduler took another node.",
	StabilityLevel: metrics.ALPHA,
}, []string{"profile", "reason"})

// What follows on a binding that was refused because the node has no room.
const (
	outcomeNext    = "next"    // another node is tried at once
	outcomeAgain   = "again"   // the pod is decided anew at once
	outcomeBackoff = "backoff" // the pod waits, and is tried again
)

var refusedBindings = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem,
	Name:      "refused_bindings_total",
	Help: "Number of bindings that were refused because the node has no room, by profile and by what followed: next, another node at once; " +
		"again, a new cycle at once; backoff, a new cycle after a while.",
	StabilityLevel: metrics.ALPHA,
}, []string{"profile", "outcome"})

// beginRefused is begin for the bindings of a profile.
func beginRefused(profile string) {
	register()
	for _, outcome := range []string{outcomeNext, outcomeAgain, outcomeBackoff} {
		refusedBindings.WithLabelValues(profile, outcome)
	}
}

// noteRefused counts a binding that was refused.
func noteRefused(profile, outcome string) { refusedBindings.WithLabelValues(profile, outcome).Inc() }

// What a pod on the full path was decided about by.
const (
	outcomeSampled  = "sampled"
	outcomeAllNodes = "all_nodes" // no node of the sample fits
)

var samples = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem,
	Name:      "sampled_pods_total",
	Help: "Number of pods on the full path that sampling was for, by profile and by what they were decided about: sampled, or all_nodes " +
		"where no node of the sample fits. Profiles without the plugin NodeSampling count none.",
	StabilityLevel: metrics.ALPHA,
}, []string{"profile", "outcome"})

var handedBack = metrics.NewCounter(&metrics.CounterOpts{
	Subsystem: subsystem,
	Name:      "handed_back_pods_total",
	Help: "Number of times that a replica of several that are active let go of a pod that had become another's to place: when it took " +
		"it up, when it was refused, or when it was about to be bound.",
	StabilityLevel: metrics.ALPHA,
})

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(hints, fallbacks, refusedBindings, samples) })

// registerShare is register for what only a replica of several counts.
var registerShare = sync.OnceFunc(func() { legacyregistry.MustRegister(handedBack) })

// begin makes the metrics of a profile known, at 0: what a counter was before it is
// first seen counts for nothing in a rate.
func begin(profile string) {
	register()
	for _, outcome := range append([]string{outcomeProposed, outcomeUsed, outcomeRefused}, fullPathOutcomes...) {
		hints.WithLabelValues(profile, outcome)
	}
	for _, reason := range fullPathOutcomes {
		fallbacks.WithLabelValues(profile, reason)
	}
}

// note counts what became of a hint. The counters are found by their labels each time: a DELETE of /metrics makes them others.
func note(profile, outcome string) {
	hints.WithLabelValues(profile, outcome).Inc()
	if slices.Contains(fullPathOutcomes, outcome) {
		fallbacks.WithLabelValues(profile, outcome).Inc()
	}
}
