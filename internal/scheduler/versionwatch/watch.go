// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versionwatch compares the version of Kubernetes that a scheduler emulates with that of the API server, which may change
// under it.
package versionwatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/serverversion"
)

// every is the pause between two looks at the API server.
const every = 5 * time.Second

var behind = metrics.NewGauge(&metrics.GaugeOpts{
	Subsystem: "espalier", Name: "minor_versions_behind", StabilityLevel: metrics.ALPHA,
	Help: "Number of minor versions that the scheduler does not use yet of those that the API server has. A restart of the scheduler takes them up.",
})

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(behind) })

// Start watches the API server of a configuration until the context ends, and ends the scheduler with an error by end.
func Start(ctx context.Context, end context.CancelCauseFunc, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = every
	asker, err := serverversion.New(config)
	if err != nil {
		return err
	}
	runs := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	tick := time.NewTicker(every)
	go func() {
		defer tick.Stop()
		if err := watch(ctx, runs.BinaryVersion(), runs.EmulationVersion(), tick.C, asker.One); err != nil {
			end(err)
		}
	}()
	return nil
}

// watch looks at the API server whenever tick has a value, and ends with an error when the API server is older than what the scheduler
// emulates, twice in a row: a kind that it no longer has would be waited for in vain. One answer may have come from elsewhere. A newer API
// server changes nothing until the next start, and the metric and one line of the log say so. Without an error watch ends with the context.
//
// The scheduler is built from one version and emulates the same or an older one. Ask returns the version of the API server, nil where it
// does not say; an error is no answer, which says nothing of the version.
func watch(ctx context.Context, built, emulated *version.Version, tick <-chan time.Time, ask func() (*version.Version, error)) error {
	register()
	said, older := 0, 0
	for {
		if server, err := ask(); err == nil && server != nil {
			if server.LessThan(emulated) {
				older++
			} else {
				older = 0
			}
			if older > 1 {
				return fmt.Errorf("the API server is of Kubernetes %s now, and this scheduler runs as one of %s: it ends, and is right for %s when it starts again", server, emulated, server)
			}
			missed := max(0, min(int(server.Minor()), int(built.Minor()))-int(emulated.Minor()))
			behind.Set(float64(missed))
			if missed != said && missed > 0 {
				klog.FromContext(ctx).Info("The API server is of a newer version. Restart the scheduler to use what it adds", "version", server, "emulated", emulated)
			}
			said = missed
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}
