// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// What became of a binding.
const (
	admitted = "admitted"
	refused  = "refused"
	// unchecked bindings are let pass without a look: those of pods that are bound already, or are not there any more.
	unchecked = "unchecked"
)

var (
	bindings = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "espalier_arbiter_bindings_total",
		Help: "Bindings about which the arbiter was asked, by what it said: admitted; refused, because the node has no room; unchecked, because the pod is bound already or gone.",
	}, []string{"result"})
	waits = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "espalier_arbiter_waits_total", Help: "Bindings that waited for news of their node before they were admitted or refused.",
	})
)

// register adds the metrics to those that controllers of a process have, until unregister is called.
func register(l *Ledger) (unregister func(), err error) {
	for _, result := range []string{admitted, refused, unchecked} {
		bindings.WithLabelValues(result) // what has never happened is 0, and not missing
	}
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "espalier_arbiter_unseen_pods", Help: "Pods that were admitted to a node and have not been seen there yet.",
	}, func() float64 { return float64(l.Unseen()) })
	all := []prometheus.Collector{bindings, waits, gauge}
	for _, c := range all {
		if err := metrics.Registry.Register(c); err != nil {
			return nil, err
		}
	}
	return func() {
		for _, c := range all {
			metrics.Registry.Unregister(c)
		}
	}, nil
}
