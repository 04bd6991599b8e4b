// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package looks has controllers look at the cluster again and again, and counts their looks.
package looks

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
	Name: "espalier_looks_total", Help: "Looks at the cluster that have ended without an error, by controller.",
}, []string{"controller"})

// register makes the metric known, once for all controllers of a process.
var register = sync.OnceFunc(func() { metrics.Registry.MustRegister(total) })

// Repeat has a controller look until the context ends: at once, and so long after the end of each look. Doing is what an error is logged with. A look that ends
// with one does not count: whoever waits for a look wants it to have seen everything.
func Repeat(ctx context.Context, controller string, every time.Duration, doing string, look func(context.Context) error) {
	register()
	looks := total.WithLabelValues(controller)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := look(ctx); err != nil {
			klog.FromContext(ctx).Error(err, doing)
			return
		}
		looks.Inc()
	}, every)
}
