// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints serves what kube-scheduler serves, and one readiness check more.
package endpoints

import (
	"context"
	"errors"
	"net/http"
	goruntime "runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
	zpagesfeatures "k8s.io/component-base/zpages/features"

	"github.com/espalier-scheduler/espalier/internal/informersync"
)

// component is the name of kube-scheduler in /statusz and /flagz.
const component = "kube-scheduler"

// shutdown is how long requests that are under way may take when the scheduler ends.
const shutdown = 5 * time.Second

// Options are what is served.
type Options struct {
	Serving        *server.SecureServingInfo
	Authentication authenticator.Request
	Authorization  authorizer.UnconditionalAuthorizer
	// Election is nil where there is none.
	Election *leaderelection.LeaderElectionConfig
	// Leads reports whether the Lease is held.
	Leads func() bool
	// Synced waits until the informers of the scheduler have all objects, and it knows of them, or its context ends.
	Synced    func(context.Context) error
	Informers *informersync.Tracker
	// Resources serves what pods request.
	Resources http.Handler
	// Profiling and Contention are whether profiles are served, and those of locks.
	Profiling, Contention bool
	// Version is the version that the scheduler is built from, and the one that it emulates.
	Version *version.Info
	Flagz   flagz.Reader
}

// Serve begins to serve, until the context ends. It takes the place of the part of kube-scheduler's app.Run that does, which lets nobody add a check, and is
// left out where the configuration has no port. Left out here is the candidate of a coordinated election, which says of its own informer whether it is filled.
func Serve(ctx context.Context, o Options) error {
	info := &apirequest.RequestInfoFactory{}
	handler := genericapifilters.WithAuthorization(o.paths(ctx), o.Authorization, scheme.Codecs)
	handler = genericapifilters.WithAuthentication(handler, o.Authentication, genericapifilters.Unauthorized(scheme.Codecs), nil, nil)
	handler = genericapifilters.WithRequestInfo(handler, info)
	handler = genericapifilters.WithCacheControl(handler)
	handler = genericfilters.WithHTTPLogging(handler)
	handler = genericfilters.WithPanicRecovery(handler, info)
	// Nobody waits for its end: a scheduler that gives up its Lease ends at once.
	_, _, err := o.Serving.Serve(handler, shutdown, ctx.Done())
	return err
}

// paths are all that is served.
func (o *Options) paths(ctx context.Context) http.Handler {
	var health []healthz.HealthChecker
	if o.Election != nil {
		health = append(health, o.Election.WatchDog)
	}
	ready := slices.Concat(health, []healthz.HealthChecker{
		healthz.NewShutdownHealthz(ctx.Done()),
		healthz.NamedCheck("sched-handler-sync", func(*http.Request) error {
			once, done := context.WithCancel(ctx)
			done() // one look
			if o.Synced(once) != nil {
				return errors.New("handlers are not fully synchronized")
			}
			return nil
		}),
		healthz.NamedCheck(informersync.Check, o.Informers.Awaited),
	})

	paths := mux.NewPathRecorderMux(component)
	healthz.InstallHandler(paths, health...)
	healthz.InstallLivezHandler(paths)
	healthz.InstallReadyzHandler(paths, ready...)
	configz.InstallHandler(paths)
	paths.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		responsewriters.WriteRawJSON(http.StatusOK, o.Version, w)
	})
	paths.Handle("/metrics", legacyregistry.HandlerWithReset())
	paths.HandleFunc("/metrics/resources", func(w http.ResponseWriter, r *http.Request) {
		if o.Leads() {
			o.Resources.ServeHTTP(w, r)
		}
	})
	slis.SLIMetricsWithReset{}.Install(paths)
	if o.Profiling {
		routes.Profiling{}.Install(paths)
		if o.Contention {
			goruntime.SetBlockProfileRate(1)
		}
		routes.DebugFlags{}.Install(paths, "v", routes.StringFlagPutHandler(logs.GlogSetter))
	}
	if utilfeature.DefaultFeatureGate.Enabled(zpagesfeatures.ComponentFlagz) && o.Flagz != nil {
		flagz.Install(paths, component, o.Flagz)
	}
	if utilfeature.DefaultFeatureGate.Enabled(zpagesfeatures.ComponentStatusz) {
		statusz.Install(paths, component, statusz.NewRegistry(compatibility.DefaultBuildEffectiveVersion(), statusz.WithListedPaths(paths.ListedPaths())))
	}

	return paths
}
