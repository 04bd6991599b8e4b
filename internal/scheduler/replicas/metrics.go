// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	seen = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "espalier", Name: "active_replicas", StabilityLevel: metrics.ALPHA,
		Help: "Number of replicas of the scheduler that hold a Lease, as this one sees them, itself included.",
	})
	placing = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "espalier", Name: "active_replica_placing", StabilityLevel: metrics.ALPHA,
		Help: "1 while this replica places the pods of its workloads, 0 while it waits for a Lease or for others to acknowledge it.",
	})
	register = sync.OnceFunc(func() { legacyregistry.MustRegister(seen, placing) })
)

// show sets the metrics.
func show(members int, active bool) {
	seen.Set(float64(members))
	placing.Set(0)
	if active {
		placing.Set(1)
	}
}
