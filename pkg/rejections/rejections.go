// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rejections counts what our filters refuse, by reason. A filter that refuses
// is called for thousands of nodes, many at once, so all that is left to do then is to
// add one: the counter of each reason is made when the program starts.
package rejections

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

// For returns the counter of a plugin's reason, which is one of few words: what a
// message quotes is no reason. It is there, at 0, before anything is refused.
func For(plugin, reason string) Counter {
	register()
	return Counter{rejections.WithLabelValues(plugin, reason)}
}
