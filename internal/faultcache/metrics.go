// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// subsystem is the prefix of our metrics: espalier_.
const subsystem = "espalier"

// What an attempt to write came to, and what failures are known by.
const (
	resultSuccess = "success"
	resultError   = "error"
	sourceEvents  = "events"
	sourceRecord  = "record"
)

// Labels are bounded: a profile is one of the configuration's, a kind one of the
// vocabulary of podoutcome.Failures. Workloads and nodes are no labels: those of a
// mark are in its Event.
var (
	faultyNodes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "faulty_nodes", StabilityLevel: metrics.ALPHA,
		Help: "Number of marks: a node counts once for each revision of a workload that it is faulty for.",
	}, []string{"profile"})
	marksTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "faulty_node_marks_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of times that a node was marked faulty for a revision of a workload.",
	}, []string{"profile"})
	failuresTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of failures of pods on their nodes, by kind, before it is known whose fault they are.",
	}, []string{"profile", "kind"})
	suspectNodes = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "suspect_nodes", StabilityLevel: metrics.ALPHA,
		Help: "Number of nodes that are faulty for several unrelated workloads.",
	}, []string{"profile"})
	recordWritesTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "failure_record_writes_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of attempts to write the record of failures, by result: success or error.",
	}, []string{"profile", "result"})
	sourceErrorsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "failure_source_errors_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of errors in reading what failures are known by, by source: events or record.",
	}, []string{"profile", "source"})
)

// register makes the metrics known, once for all caches of a process.
var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(faultyNodes, marksTotal, failuresTotal, suspectNodes, recordWritesTotal, sourceErrorsTotal)
})

// begin makes the counters of a profile known, at 0: what a counter was before it is
// first seen counts for nothing in a rate. Those of failures are too many.
func begin(profile string) {
	register()
	marksTotal.WithLabelValues(profile)
	for _, result := range []string{resultSuccess, resultError} {
		recordWritesTotal.WithLabelValues(profile, result)
	}
	for _, source := range []string{sourceEvents, sourceRecord} {
		sourceErrorsTotal.WithLabelValues(profile, source)
	}
}

// gauge sets a gauge of what is now. A scheduler that stands by leaves it: the same nodes
// would count twice.
func (c *Cache) gauge(of *metrics.GaugeVec, n int) {
	if c.active.Load() {
		of.WithLabelValues(c.options.SchedulerName).Set(float64(n))
	}
}
