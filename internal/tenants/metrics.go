// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
)

// subsystem is the prefix of our metrics: espalier_.
const subsystem = "espalier"

var (
	orderDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "allocation_order_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time it took to put the pods of all partitions in order.",
		Buckets: metrics.ExponentialBuckets(0.0001, 2, 16),
	})
	// Who runs the cluster names partitions, and there are few.
	partitionPods = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "partition_pods", StabilityLevel: metrics.ALPHA,
		Help: "Number of pods of the allocations of a partition, by state: running; waiting; reserved_waiting for those of the waiting that are within " +
			"the reservation of their allocation.",
	}, []string{"partition", "state"})
	unreadable = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "allocations_unreadable", StabilityLevel: metrics.ALPHA,
		Help: "1 while Partitions or Allocations cannot be read: changes of them are missed, and a scheduler that has not read any goes on as if there " +
			"were none where it lacks the right, and else lets no pods in.",
	})
)

// register makes the metrics known, once for all schedulers of a process.
var register = sync.OnceFunc(func() { legacyregistry.MustRegister(orderDuration, partitionPods, unreadable) })

// noteReadable has the metric say whether both kinds can be read.
func (t *Tenants) noteReadable() {
	t.mu.Lock() // the last one to be here has seen what there is
	defer t.mu.Unlock()
	value := 0.0
	for _, of := range t.of {
		if of.Unreadable() {
			value = 1
		}
	}
	unreadable.Set(value)
}

// observe has the metrics say what an order is like, and how long it took.
func observe(order *allocations.Order, took time.Duration) {
	orderDuration.Observe(took.Seconds())
	partitionPods.Reset() // partitions come and go
	for _, q := range order.Queues {
		var running, waiting, reserved float64
		for i := range q.Entries {
			switch e := &q.Entries[i]; {
			case e.Pod.Placed:
				running++
			case e.Reserved:
				reserved++
				waiting++
			default:
				waiting++
			}
		}
		for state, n := range map[string]float64{"running": running, "waiting": waiting, "reserved_waiting": reserved} {
			partitionPods.WithLabelValues(q.Partition.Name, state).Set(n)
		}
	}
}
