// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusal is what our plugins share about the pods and nodes that they refuse.
//
//   - counter.go: refusals are counted, by plugin and reason
//   - hint.go: the queue is told whether an event helps a pod that was refused
//   - waiting.go: such pods are put back into the queue by changes that are no events
//
// It knows no plugin.
package refusal

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Reasons for which pods are refused as a whole, by several plugins.
const (
	// Unreadable: what the pod asks for cannot be read, or is not there.
	Unreadable = "unreadable"
	// PoliciesUnknown: it is not known whether a policy governs the pod.
	PoliciesUnknown = "policies_unknown"
)

// A filter that refuses is called for thousands of nodes, many at once, so all that is left
// to do then is to add one: the counter of each reason is made when the program starts.
var rejections = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: "espalier",
	Name:      "rejections_total",
	Help: "Number of times that a filter refused a node to a pod, or a pod as a whole, by plugin and reason. " +
		"A pod that is tried again counts again.",
	StabilityLevel: metrics.ALPHA,
}, []string{"plugin", "reason"})

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(rejections) })

// Counter is the counter of one reason.
type Counter struct{ metrics.CounterMetric }

// CounterOf returns the counter of a plugin's reason, which is one of few words: what a
// message quotes is no reason. It is there, at 0, before anything is refused.
func CounterOf(plugin, reason string) Counter {
	register()
	return Counter{rejections.WithLabelValues(plugin, reason)}
}
