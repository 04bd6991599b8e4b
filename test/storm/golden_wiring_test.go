// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/upstream"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/recordingbinder"
)

// direct answers requests by a call of a handler: a bubble knows no network.
type direct struct{ http.Handler }

// RoundTrip answers a request. The handler goes on as long as somebody reads what it writes.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, in := io.Pipe()
	w := &answering{header: make(http.Header), begun: make(chan int, 1), body: in}
	go func() {
		d.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
		_ = in.Close() // it never fails
	}()
	select {
	case code := <-w.begun:
		return &http.Response{StatusCode: code, Header: w.header, Request: r, ProtoMajor: 1, ProtoMinor: 1, Body: read{body, cancel}}, nil
	case <-ctx.Done():
		cancel()
		_ = body.Close()
		return nil, ctx.Err()
	}
}

// answering is the answer of a handler.
type answering struct {
	header http.Header
	once   sync.Once
	begun  chan int
	body   *io.PipeWriter
}

func (a *answering) Header() http.Header  { return a.header }
func (a *answering) WriteHeader(code int) { a.once.Do(func() { a.begun <- code }) }
func (a *answering) Flush()               { a.WriteHeader(http.StatusOK) }

func (a *answering) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// read is an answer that is read. The handler ends with it.
type read struct {
	*io.PipeReader
	cancel func()
}

func (r read) Close() error {
	r.cancel()
	return r.PipeReader.Close()
}

// reply is how long the answer to a write takes when it is done. All who watch have seen it by then: of what the scheduler does when it has the
// answer, and what when it sees the change, either could be first.
const reply = 7 * time.Millisecond

// replying is the client of a scheduler, to which the API server replies after a while.
type replying struct{ *apiServer }

func (r replying) CoreV1() typedcorev1.CoreV1Interface {
	return replyingCore{r.apiServer.CoreV1()}
}

type replyingCore struct{ typedcorev1.CoreV1Interface }

func (r replyingCore) Pods(ns string) typedcorev1.PodInterface {
	return replyingPods{r.CoreV1Interface.Pods(ns)}
}

type replyingPods struct{ typedcorev1.PodInterface }

func (r replyingPods) Bind(ctx context.Context, binding *corev1.Binding, o metav1.CreateOptions) error {
	defer time.Sleep(reply)
	return r.PodInterface.Bind(ctx, binding, o)
}

func (r replyingPods) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	defer time.Sleep(reply)
	return r.PodInterface.Patch(ctx, name, pt, data, o, subresources...)
}

func (r replyingPods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	defer time.Sleep(reply)
	return r.PodInterface.Delete(ctx, name, o)
}

// decode reads a configuration of manifests, by its path from there.
func decode(t *testing.T, path string) *schedulerapi.KubeSchedulerConfiguration {
	t.Helper()
	text, err := os.ReadFile("../../manifests/" + path)
	if err != nil {
		t.Fatal(err)
	}
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := obj.(*schedulerapi.KubeSchedulerConfiguration)
	c.APIVersion = gvk.GroupVersion().String()
	return c
}

// args returns the arguments of a plugin of a profile.
func args[T any](t *testing.T, of *schedulerapi.KubeSchedulerProfile) *T {
	t.Helper()
	for _, p := range of.PluginConfig {
		if a, is := p.Args.(any).(*T); is {
			return a
		}
	}
	t.Fatalf("profile %s has no %T", of.SchedulerName, *new(T))
	return nil
}

// start starts a scheduler of a configuration, wired as the command wires it. Owner says which pods are its own where it is one of several that are
// active, and is nil for one alone.
func (g *goldenRun) start(c *schedulerapi.KubeSchedulerConfiguration, owner *sharing) {
	g.Helper()
	registry := g.seen.registry()
	if owner != nil {
		registry[owner.Name()] = owner.plugin
	}
	r := &running{informers: scheduler.NewInformerFactory(g.server, 0, nil), events: events.NewBroadcaster(&events.EventSinkImpl{Interface: g.server.EventsV1()})}
	r.ctx, r.cancel = context.WithCancel(g.Context())
	var err error
	r.Scheduler, err = scheduler.New(r.ctx, replying{g.server}, r.informers, nil, profile.NewRecorderFactory(r.events),
		scheduler.WithComponentConfigVersion(c.APIVersion),
		scheduler.WithKubeConfig(&rest.Config{Host: "http://in-process", Transport: direct{g.server.ourKinds()}}),
		scheduler.WithProfiles(c.Profiles...),
		scheduler.WithPercentageOfNodesToScore(c.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodInitialBackoffSeconds(c.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(c.PodMaxBackoffSeconds),
		scheduler.WithParallelism(c.Parallelism),
	)
	if err != nil {
		g.Fatal(err)
	}
	options := upstream.Options{
		Profiles: c.Profiles, NodeLocal: plugins.NodeLocal(), Client: g.server, Unsent: errors.New("this scheduler is no longer the leader"),
	}
	options.Candidates, options.Announced = bindings(c.Profiles)
	if owner != nil {
		options.Share = &upstream.Sharing{Owner: owner, Plugin: owner.Name(), Single: plugins.Single(), Pods: r.informers.Core().V1().Pods().Lister()}
	}
	if without, err := upstream.Adapt(r.ctx, r.Scheduler, options); err != nil || len(without) > 0 {
		g.Fatal(without, err)
	}
	g.r = r
	g.witness()
	r.events.StartRecordingToSink(r.ctx.Done())
	// Whoever waits for the informers asks them every 100 ms: all of them are to ask in vain, and then to hear of it at one time.
	synctest.Wait()
	r.informers.StartWithContext(r.ctx)
	synctest.Wait()
	r.informers.WaitForCacheSyncWithContext(r.ctx)
	if err := r.WaitForHandlersSync(r.ctx); err != nil {
		g.Fatal(err)
	}
	r.run()
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

// gate holds a scheduler between two pods.
type gate struct {
	mu   sync.Mutex
	open *sync.Cond
	shut bool
}

func newGate() *gate {
	g := &gate{}
	g.open = sync.NewCond(&g.mu)
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.open.Broadcast()
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut {
		g.open.Wait()
	}
}

// witness has all decisions of the scheduler be seen.
func (g *goldenRun) witness() {
	for name, f := range g.r.Profiles {
		g.r.Profiles[name] = &witnessed{f, g}
	}
	next, handle := g.r.NextEntity, g.r.FailureHandler
	g.r.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		g.gate.pass()
		return next(logger)
	}
	g.r.FailureHandler = g.journal.failures(handle)
}
