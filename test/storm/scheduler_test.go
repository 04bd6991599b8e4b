// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"sync"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/upstream"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

// The profiles: the shipped one, and one that looks at all nodes.
const (
	shipped = "espalier-scheduler"
	scored  = "espalier-scored"
)

var profiles = []string{shipped, scored}

// configuration is the shipped one with both profiles.
func configuration(t *testing.T) *schedulerapi.KubeSchedulerConfiguration {
	t.Helper()
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(manifests.SchedulerConfig, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := obj.(*schedulerapi.KubeSchedulerConfiguration)
	p := c.Profiles[0].DeepCopy()
	p.SchedulerName = scored
	for _, plugin := range p.PluginConfig {
		if args, ok := plugin.Args.(*config.SpreadTreeArgs); ok {
			args.NodeHint = config.NodeHintDisabled
		}
	}
	c.Profiles = append(c.Profiles, *p)
	return c
}

// running is a scheduler in this process, as the command wires it.
type running struct {
	*scheduler.Scheduler
	ctx    context.Context
	cancel func()
	all    sync.WaitGroup
	// turn is held while a pod is decided: who has it sees the scheduler between two pods.
	turn      sync.Mutex
	informers informers.SharedInformerFactory
	events    events.EventBroadcaster
}

// start makes a scheduler and fills its informers. It decides nothing before go.
func start(t *testing.T, server *apiServer) *running {
	t.Helper()
	r := &running{informers: scheduler.NewInformerFactory(server, 0, nil), events: events.NewBroadcaster(&events.EventSinkImpl{Interface: server.EventsV1()})}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	c := configuration(t)
	var err error
	r.Scheduler, err = scheduler.New(r.ctx, server, r.informers, nil, profile.NewRecorderFactory(r.events),
		scheduler.WithComponentConfigVersion(c.APIVersion),
		scheduler.WithKubeConfig(&rest.Config{Host: server.URL}),
		scheduler.WithProfiles(c.Profiles...),
		scheduler.WithPercentageOfNodesToScore(c.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry()),
		scheduler.WithPodInitialBackoffSeconds(1),
		scheduler.WithPodMaxBackoffSeconds(1),
	)
	if err != nil {
		t.Fatal(err)
	}
	without, err := upstream.Adapt(r.ctx, r.Scheduler, upstream.Options{Profiles: c.Profiles, NodeLocal: plugins.NodeLocal(), Client: server})
	if err != nil || len(without) > 0 {
		t.Fatal(without, err)
	}
	r.turn.Lock()
	pop := r.NextEntity
	r.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		r.turn.Unlock()
		defer r.turn.Lock()
		return pop(logger)
	}
	r.events.StartRecordingToSink(r.ctx.Done())
	r.informers.StartWithContext(r.ctx)
	r.informers.WaitForCacheSyncWithContext(r.ctx)
	if err := r.WaitForHandlersSync(r.ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

// run has it decide.
func (r *running) run() { r.all.Go(func() { r.Run(r.ctx) }) }

// end stops all that was started, and returns when that can be waited for.
func (r *running) end() {
	r.cancel()
	r.all.Wait()
	r.informers.Shutdown()
	r.events.Shutdown()
}

// snapshot is the cluster as the scheduler has it now, which is shown to its plugins. The caller has the turn.
func (r *running) snapshot(t *testing.T) *cache.Snapshot {
	t.Helper()
	s := r.Profiles[shipped].SnapshotSharedLister().(*cache.Snapshot)
	if err := r.Cache.UpdateSnapshot(klog.FromContext(r.ctx), s); err != nil {
		t.Fatal(err)
	}
	return s
}
