// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
)

// goldenFile is what comes of each pod of each section.
const goldenFile = "testdata/golden.txt"

var update = flag.Bool("update", false, "write "+goldenFile+" anew; read what changes there before you commit it")

// section is a configuration of the scheduler, with a cluster of its own and what happens in it.
type section struct {
	name string
	// about says what is configured, for who reads the file.
	about string
	run   func(*goldenRun)
}

// TestPlacements holds what the scheduler makes of each of some 400 pods of every kind, under every profile that is shipped: the node, the levels, all
// annotations that it is bound with, or why it is refused, and the counters that move. One pod is decided at a time, by the clock of a bubble, so
// that nothing is left to chance. A change that only moves code changes no line of the file.
//
// That everything takes part is asserted as well: by a plugin that nothing asks, or a counter that never moves, no change would be seen.
func TestPlacements(t *testing.T) {
	t.Cleanup(noteErrors())
	// One thing happens at a time: a watcher is a few changes behind at most, and there are hundreds of watchers.
	t.Cleanup(func(size int32) func() { return func() { watch.DefaultChanSize = size } }(watch.DefaultChanSize))
	watch.DefaultChanSize = 1000
	// A scheduler asks for signals. What delivers them lives as long as the process, so that it must not begin in a bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
	want := readSections(t)
	got, seen := make(map[string]string), newSeen(t)
	for _, s := range sections {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { got[s.name] = runSection(t, s, seen) })
			if !*update {
				compareBlocks(t, want[s.name], got[s.name])
			}
		})
	}
	if len(got) == len(sections) { // some alone, asked for with -run, say nothing of the whole
		seen.check(t)
	}
	all := make([]string, len(sections))
	for i, s := range sections {
		all[i] = cmp.Or(got[s.name], want[s.name])
	}
	text := strings.Join(all, "\n\n") + "\n"
	if len(text) > 200<<10 {
		t.Errorf("the file has %d bytes, which nobody reads", len(text))
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(text), 0o644); err != nil { //nolint:gosec // anybody may read it
			t.Fatal(err)
		}
	}
}

// beginsSection begins the first line of a section.
const beginsSection = "== "

// readSections returns what the file has of each section.
func readSections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil && !*update {
		t.Fatalf("%v: run the test with -update", err)
	}
	all := make(map[string]string)
	for part := range strings.SplitSeq("\n\n"+strings.TrimSpace(string(text)), "\n\n"+beginsSection) {
		name, _, _ := strings.Cut(part, ":")
		all[name] = beginsSection + part
	}
	return all
}

// block is a line that begins at the margin, with those below it that do not.
type block struct {
	title string
	lines []string
}

func blocksOf(text string) (all []block) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, " ") && len(all) > 0 {
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		} else if line != "" {
			all = append(all, block{title: line})
		}
	}
	return all
}

// compareBlocks names what has changed, and how.
func compareBlocks(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	var changed []string
	var diffs strings.Builder
	note := func(title string, want, got []string) {
		changed = append(changed, title)
		fmt.Fprintf(&diffs, "\n%s\n%s", title, gocmp.Diff(want, got))
	}
	was, is := blocksOf(want), blocksOf(got)
	find := func(in []block, title string) *block {
		if i := slices.IndexFunc(in, func(b block) bool { return b.title == title }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	for _, b := range was {
		if now := find(is, b.title); now == nil {
			note(b.title+" (is gone)", b.lines, nil)
		} else if !slices.Equal(b.lines, now.lines) {
			note(b.title, b.lines, now.lines)
		}
	}
	for _, b := range is {
		if find(was, b.title) == nil {
			note(b.title+" (is new)", nil, b.lines)
		}
	}
	if len(changed) == 0 {
		t.Error("the same blocks come in another order")
		return
	}
	t.Errorf("of %d blocks these %d are others than in %s (-want +got):\n%s\n%s", len(was), len(changed), goldenFile, strings.Join(changed, "\n"), diffs.String())
}

// reported takes the errors that are only logged, while it is not nil.
var reported func(error, string)

// noteErrors has errors that are only logged be noted, and nobody wait after one: that wait goes by a clock which is not that of a
// bubble. The returned function takes it back.
func noteErrors() (restore func()) {
	was := utilruntime.ErrorHandlers
	//nolint:reassign // it is what apimachinery has to change who is told of errors
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, msg string, _ ...any) {
		if reported != nil {
			reported(err, msg)
		}
	}}
	return func() { utilruntime.ErrorHandlers = was } //nolint:reassign // as above
}

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
	must(t, err)
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	must(t, err)
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
