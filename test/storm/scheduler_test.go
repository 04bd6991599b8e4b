// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/upstream"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/ownership"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodesampling"
	"github.com/espalier-scheduler/espalier/pkg/plugins/recordingbinder"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// The profiles: the shipped one, one that looks at all nodes and announces nothing, and one that samples the nodes for pods without a node hint.
const (
	shipped  = "espalier-scheduler"
	scored   = "espalier-scored"
	sampling = "espalier-sampled"
)

// profiles are those that are told apart wherever scores are. The storm has one more.
var (
	profiles = []string{shipped, scored}
	stormy   = []string{shipped, scored, sampling}
)

// configuration is the shipped one with both profiles.
func configuration(t *testing.T) *schedulerapi.KubeSchedulerConfiguration {
	t.Helper()
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(manifests.SchedulerConfig, nil, nil)
	must(t, err)
	c := obj.(*schedulerapi.KubeSchedulerConfiguration)
	p := c.Profiles[0].DeepCopy()
	p.SchedulerName = scored
	args[config.SpreadTreeArgs](t, p).NodeHint = config.NodeHintDisabled
	c.Profiles = append(c.Profiles, *p)
	return c
}

// stormyConfiguration has all profiles, for one of several schedulers if there is an owner.
func stormyConfiguration(t *testing.T, of *sharing) *schedulerapi.KubeSchedulerConfiguration {
	t.Helper()
	c := configuration(t)
	c.PodMaxBackoffSeconds = 1
	some := c.Profiles[0].DeepCopy()
	some.SchedulerName = sampling
	enable := func(p *schedulerapi.KubeSchedulerProfile, plugin string) {
		p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, schedulerapi.Plugin{Name: plugin})
	}
	enable(some, nodesampling.Name)
	some.PluginConfig = append(some.PluginConfig, schedulerapi.PluginConfig{Name: nodesampling.Name, Args: &config.NodeSamplingArgs{
		TopologyKey: zone, GroupsBasisPoints: 10_000, NodesBasisPoints: 3_000, Strategy: config.SamplingRandom, TimeoutMilliseconds: 1000,
	}})
	args[config.RecordingBinderArgs](t, &c.Profiles[1]).ScheduledEvents = config.ScheduledEventsOff
	c.Profiles = append(c.Profiles, *some)
	if of != nil {
		for i := range c.Profiles {
			enable(&c.Profiles[i], of.Name())
		}
	}
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
	// of has its part of the pods, nil if all are its own.
	of *sharing
	observed
}

// wiring is how a scheduler meets its API server.
type wiring struct {
	registry frameworkruntime.Registry
	rest     *rest.Config
	// scheduling is its client, asking the one by which it asks what became of bindings.
	scheduling, asking kubernetes.Interface
	// beneath, if set, is called before anything is wrapped around the scheduler.
	beneath func()
}

// assemble makes the scheduler of a configuration.
func (r *running) assemble(t *testing.T, server *apiServer, c *schedulerapi.KubeSchedulerConfiguration, w wiring) {
	t.Helper()
	r.informers = scheduler.NewInformerFactory(server, 0, nil)
	r.events = events.NewBroadcaster(&events.EventSinkImpl{Interface: server.EventsV1()})
	r.ctx, r.cancel = context.WithCancel(t.Context())
	o := upstream.Options{
		Profiles: c.Profiles, NodeLocal: plugins.NodeLocal(), Client: w.asking, Unsent: errors.New("this scheduler is no longer the leader"),
		Withheld: func(*corev1.Pod) error { r.admitted.Add(1); return nil },
	}
	o.Candidates, o.Announced = bindings(c.Profiles)
	if r.of != nil {
		w.registry[r.of.Name()] = r.of.plugin
		o.Share = &upstream.Sharing{Owner: r.of, Plugin: r.of.Name(), Single: plugins.Single(), Pods: r.informers.Core().V1().Pods().Lister()}
	}
	var err error
	r.Scheduler, err = scheduler.New(r.ctx, w.scheduling, r.informers, nil, profile.NewRecorderFactory(r.events),
		scheduler.WithComponentConfigVersion(c.APIVersion),
		scheduler.WithKubeConfig(w.rest),
		scheduler.WithProfiles(c.Profiles...),
		scheduler.WithPercentageOfNodesToScore(c.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(w.registry),
		scheduler.WithPodInitialBackoffSeconds(c.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(c.PodMaxBackoffSeconds),
		scheduler.WithParallelism(c.Parallelism),
	)
	must(t, err)
	if w.beneath != nil {
		w.beneath()
	}
	if without, err := upstream.Adapt(r.ctx, r.Scheduler, o); err != nil || len(without) > 0 {
		t.Fatal(without, err)
	}
}

// bindings are, by profile, to how many nodes a pod is bound at most, and which bound pods get an event, as the command has them.
func bindings(profiles []schedulerapi.KubeSchedulerProfile) (candidates map[string]int, announced map[string]func(*corev1.Pod) bool) {
	candidates, announced = make(map[string]int), make(map[string]func(*corev1.Pod) bool)
	for _, p := range profiles {
		for _, plugin := range p.PluginConfig {
			if args, is := plugin.Args.(*config.RecordingBinderArgs); is {
				candidates[p.SchedulerName] = int(args.Candidates)
				if events := args.ScheduledEvents; events != config.ScheduledEventsAll {
					announced[p.SchedulerName] = func(pod *corev1.Pod) bool { return recordingbinder.Announced(events, pod) }
				}
			}
		}
	}
	return candidates, announced
}

// start makes a scheduler of the storm and fills its informers. It decides nothing before run.
func start(t *testing.T, server *apiServer, of *sharing) *running {
	t.Helper()
	r := &running{of: of}
	registry := plugins.Registry()
	registry[spreadtree.Name] = r.follow
	r.assemble(t, server, stormyConfiguration(t, of), wiring{
		registry: registry, rest: &rest.Config{Host: server.URL}, scheduling: server.scheduling(), asking: server.asking(),
		beneath: func() { r.beneath(server) },
	})
	r.turn.Lock()
	next := r.NextEntity
	r.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		r.turn.Unlock()
		defer r.turn.Lock()
		r.asks(server)
		return next(logger)
	}
	r.events.StartRecordingToSink(r.ctx.Done())
	r.informers.StartWithContext(r.ctx)
	r.synced(t)
	return r
}

// synced waits until the scheduler knows what there is.
func (r *running) synced(t *testing.T) {
	t.Helper()
	r.informers.WaitForCacheSyncWithContext(r.ctx)
	must(t, r.WaitForHandlersSync(r.ctx))
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
	must(t, r.Cache.UpdateSnapshot(klog.FromContext(r.ctx), s))
	return s
}

// sharing is the part of one replica of several: it is told which there are.
type sharing struct {
	mu      sync.Mutex // guards what follows
	members []string
	changed func()
}

// The replica that is tested, and another one.
const (
	thisReplica  = "replica-0"
	otherReplica = "replica-1"
)

// set settles which replicas there are, and tells nobody.
func (s *sharing) set(members ...string) (tell func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = members
	if s.changed == nil {
		return func() {}
	}
	return s.changed
}

// Name is the plugin's name in a profile.
func (s *sharing) Name() string { return "ActiveReplicas" }

// Identity is that of this replica.
func (s *sharing) Identity() string { return thisReplica }

// Owns reports whether a pod is this replica's to place.
func (s *sharing) Owns(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ownership.Owner(clusterview.OwnershipKey(pod), s.members) == thisReplica
}

// Begin is called before a pod is bound.
func (s *sharing) Begin(pod *corev1.Pod) (end func(), ok bool) { return func() {}, s.Owns(pod) }

// OnChange has a function called when other pods than before are its own.
func (s *sharing) OnChange(changed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

func (s *sharing) plugin(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return s, nil
}

// PreEnqueue lets the pods in that are this replica's.
func (s *sharing) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if s.Owns(pod) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "another replica places it")
}

// EventsToRegister lists nothing: what is to be told is told by OnChange.
func (s *sharing) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// replicaDeeds are those of another replica that comes and goes. Whoever hears of it tries all pods again that wait, which is not to be often: it would
// hide that the scheduler has missed what helps them.
func (a *actor) replicaDeeds(of *sharing) map[string]func(context.Context) {
	return map[string]func(context.Context){
		"come": func(context.Context) {
			if a.rarely(60) {
				of.set(thisReplica, otherReplica)()
			}
		},
		"go": func(context.Context) {
			if of.shared() && a.rarely(10) {
				of.set(thisReplica)()
			}
		},
	}
}

// shared reports that there is another replica.
func (s *sharing) shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.members) > 1
}
