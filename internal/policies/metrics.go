// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Which policies they are is in their status: their names are no labels.
var conflictsTotal = metrics.NewCounter(&metrics.CounterOpts{
	Subsystem: "espalier", Name: "policy_conflicts_total", StabilityLevel: metrics.ALPHA,
	Help: "Number of times that a pod was to be placed which more than one PlacementPolicy selects, or more than one ClusterPlacementPolicy.",
})

var unreadable = metrics.NewGauge(&metrics.GaugeOpts{
	Subsystem: "espalier", Name: "policies_unreadable", StabilityLevel: metrics.ALPHA,
	Help: "1 while PlacementPolicies or ClusterPlacementPolicies cannot be read: changes of them are missed, and a scheduler that has not read any places pods as if there " +
		"were none where it lacks the right, and else refuses them.",
})

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(conflictsTotal, unreadable) })

// NoteRivals counts a pod that is to be placed, if others select it as well as the
// policy that governs it. It is for one plugin of a profile.
func (p *Policies) NoteRivals(governing *clusterview.Policy, pod *corev1.Pod) {
	if governing == nil {
		return
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if list, err := p.in(pod.Namespace); err == nil && clusterview.Contested(list, governing, pod) {
		conflictsTotal.Inc()
	}
}

// noteReadable has the metric say whether all kinds can be read.
func (p *Policies) noteReadable() {
	p.mu.Lock() // the last one to be here has seen what there is
	defer p.mu.Unlock()
	value := 0.0
	for _, of := range p.of {
		if of.Unreadable() {
			value = 1
		}
	}
	unreadable.Set(value)
}
