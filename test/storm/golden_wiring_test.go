// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
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
	"k8s.io/klog/v2"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
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

// replyingPods are requests for pods to which the API server replies after a while.
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

// start starts a scheduler of a configuration. Owner says which pods are its own where it is one of several that are active, and is nil for one alone.
func (g *goldenRun) start(c *schedulerapi.KubeSchedulerConfiguration, owner *sharing) {
	g.Helper()
	r := &running{of: owner}
	g.r = r
	r.assemble(g.T, g.server, c, wiring{
		registry: g.seen.registry(), rest: &rest.Config{Host: "http://in-process", Transport: direct{g.server.ourKinds()}}, asking: g.server,
		scheduling: client{g.server, func(p typedcorev1.PodInterface) typedcorev1.PodInterface { return replyingPods{p} }},
	})
	g.witness()
	r.events.StartRecordingToSink(r.ctx.Done())
	// Whoever waits for the informers asks them every 100 ms: all of them are to ask in vain, and then to hear of it at one time.
	synctest.Wait()
	r.informers.StartWithContext(r.ctx)
	synctest.Wait()
	r.synced(g.T)
	r.run()
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
