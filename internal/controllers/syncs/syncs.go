// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncs has controllers read the cluster and act on it again and again, and counts how often they have.
package syncs

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var total = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "espalier_syncs_total", Help: "Number of times that a controller has read the cluster and acted on it without an error, by controller.",
}, []string{"controller"})

// register makes the metric known, once for all controllers of a process.
var register = sync.OnceFunc(func() { metrics.Registry.MustRegister(total) })

// Repeat has a controller sync until the context ends: at once, and so long after the end of each sync. Doing is what an error is logged with. A
// sync that fails does not count: whoever waits for a sync wants it to have seen everything.
func Repeat(ctx context.Context, controller string, every time.Duration, doing string, once func(context.Context) error) {
	register()
	syncs := total.WithLabelValues(controller)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := once(ctx); err != nil {
			klog.FromContext(ctx).Error(err, doing)
			return
		}
		syncs.Inc()
	}, every)
}
