// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// What became of a hint. A pod that has one counts twice, when a node is proposed
// and when one is taken; of the others each says why there was none.
const (
	outcomeProposed = "proposed"
	outcomeUsed     = "used"
	outcomeUnused   = "unused"

	outcomeNone        = "none"        // no node fits
	outcomePreassigned = "preassigned" // the pod's node is not the tree's to choose
	outcomeNominated   = "nominated"   // the scheduler tries another node first
	outcomeGroup       = "group"       // the pod is placed with others of its group
	outcomePreferences = "preferences" // the pod has some of its own, which scoring heeds
	outcomeConfined    = "confined"    // a PreFilter plugin left it some of the nodes
	outcomeError       = "error"       // a filter could not answer
)

var hints = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: "espalier",
	Name:      "hints_total",
	Help: "Number of pods by profile and by what became of the node hint: proposed, and then used or unused; or none " +
		"because no node fits, or the reason for which the pod was filtered and scored on all nodes.",
	StabilityLevel: metrics.ALPHA,
}, []string{"profile", "outcome"})

var registerOnce sync.Once

func registerMetrics() { registerOnce.Do(func() { legacyregistry.MustRegister(hints) }) }
