// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers runs the controllers of kube-controller-manager that a devcluster has in this process. It makes them as
// cmd/kube-controller-manager/app does, which is not imported: that compiles all others as well, and a server for the manager itself.
package controllers

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/apis/config"
)

// endLimit is how long the others may take to end when a controller has failed. Whoever ends all of them has a limit of its own.
const endLimit = 10 * time.Second

// kindsPeriod is how often those that act on objects of every kind look for new kinds. It is 30 seconds in kube-controller-manager, for which whoever has
// just applied a CRD would wait.
const kindsPeriod = 2 * time.Second

// manager is what all controllers share.
type manager struct {
	informers.SharedInformerFactory

	config *config.KubeControllerManagerConfiguration
	rest   *rest.Config
	// metadata and anyKind, beside the informers that have types, are for kinds of which nothing is known but that they are served.
	metadata metadata.Interface
	anyKind  informerfactory.InformerFactory
	mapper   meta.ResettableRESTMapper
	started  chan struct{} // closed once informers are
}

// loops are what runs of a controller until the context ends.
type loops []func(context.Context)

// Run runs the controllers until ctx ends, and returns when they have ended. It is an error that a controller cannot be made, ends by itself or panics. A panic in a goroutine that
// a controller has started is out of reach: it ends the process, as it ends kube-controller-manager.
func Run(ctx context.Context, c *config.KubeControllerManagerConfiguration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := newManager(c)
	if err != nil {
		return err
	}
	running := map[string]loops{}
	all := 0
	for _, controller := range controllers {
		err := guard(controller.name, func() (err error) {
			running[controller.name], err = m.build(ctx, controller)
			return err
		})
		if err != nil {
			return err
		}
		all += len(running[controller.name])
	}
	ended := make(chan error, all)
	for name, loops := range running {
		for _, loop := range loops {
			go func() { ended <- until(ctx, name, loop) }()
		}
	}
	go wait.UntilWithContext(ctx, func(context.Context) { m.mapper.Reset() }, kindsPeriod)
	m.anyKind.Start(ctx.Done())
	close(m.started)

	var limit <-chan time.Time
	select {
	case <-ctx.Done():
	case err = <-ended:
		all--
		cancel()
		limit = time.After(endLimit)
	}
	for range all {
		select {
		case other := <-ended:
			err = cmp.Or(err, other)
		case <-limit:
			klog.FromContext(ctx).Info("Some controllers have not ended", "within", endLimit)
			return err
		}
	}
	m.Shutdown()
	return err
}

// until runs a loop of a controller, which may end only when ctx has.
func until(ctx context.Context, name string, loop func(context.Context)) error {
	return guard(name, func() error {
		loop(ctx)
		if ctx.Err() == nil {
			return fmt.Errorf("%s ended by itself", name)
		}
		return nil
	})
}

// guard has a panic in what a controller does be an error.
func guard(name string, do func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%s panicked: %v\n%s", name, reason, debug.Stack())
		}
	}()
	return do()
}

// build makes a controller. It has no loops if a feature gate that it needs is off.
func (m *manager) build(ctx context.Context, c controller) (loops, error) {
	logger := klog.FromContext(ctx)
	for _, gate := range c.gates {
		if !feature.DefaultFeatureGate.Enabled(gate) {
			logger.Info("Controller is disabled by a feature gate", "controller", c.name, "gate", gate)
			return nil, nil
		}
	}
	own := rest.AddUserAgent(rest.CopyConfig(m.rest), c.agent)
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", c.name, err)
	}
	running, err := c.build(klog.NewContext(ctx, klog.LoggerWithName(logger, c.name)), share{m, own, client})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	return running, nil
}

func newManager(c *config.KubeControllerManagerConfiguration) (*manager, error) {
	connection := c.Generic.ClientConnection
	common, err := clientcmd.BuildConfigFromFlags("", connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the controllers: %w", err)
	}
	common.DisableCompression = true
	common.AcceptContentTypes, common.ContentType = connection.AcceptContentTypes, connection.ContentType
	common.QPS, common.Burst = connection.QPS, int(connection.Burst)
	shared := rest.AddUserAgent(rest.CopyConfig(common), "shared-informers")
	client, err := kubernetes.NewForConfig(shared)
	if err != nil {
		return nil, fmt.Errorf("client of the informers: %w", err)
	}
	anyKind, err := metadata.NewForConfig(shared)
	if err != nil {
		return nil, fmt.Errorf("client of the informers: %w", err)
	}
	resync := c.Generic.MinResyncPeriod.Duration
	typed := informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(trim))
	untyped := metadatainformer.NewSharedInformerFactoryWithOptions(anyKind, resync, metadatainformer.WithTransform(trim))
	return &manager{
		SharedInformerFactory: typed, config: c, rest: common, metadata: anyKind,
		anyKind: informerfactory.NewInformerFactory(typed, untyped),
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		started: make(chan struct{}),
	}, nil
}

// trim drops what no controller reads, as kube-controller-manager does to need less memory.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
