// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2/ktesting"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// limit bounds what a test waits for.
const limit = 20 * time.Second

// cluster is an API server that the test plays.
type cluster struct {
	*fcache.FakeControllerSource

	mu sync.Mutex // guards there, answerErr, listErr
	// there says that the kind is installed.
	there bool
	// answerErr and listErr are what a question and a list end in.
	answerErr, listErr error
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *cluster) installed(context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.there, c.answerErr
}

func (c *cluster) listWatch() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			c.mu.Lock()
			err := c.listErr
			c.mu.Unlock()
			if err != nil {
				return nil, err
			}
			return c.List(o)
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) { return c.Watch(o) },
	}, c)
}

func (c *cluster) pause() time.Duration { return time.Millisecond }

// IsWatchListSemanticsUnSupported tells the informer to list before it watches.
func (c *cluster) IsWatchListSemanticsUnSupported() bool { return true }

// rig is policies that watch a cluster, among pods that wait.
type rig struct {
	*Policies
	t       *testing.T
	cluster *cluster
	pods    cache.Indexer
	woken   chan []string // UIDs, sorted
}

func start(t *testing.T, prepare func(*cluster), pods ...*corev1.Pod) *rig {
	t.Helper()
	r := &rig{
		t: t, cluster: &cluster{FakeControllerSource: fcache.NewFakeControllerSource()},
		pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), woken: make(chan []string, 100),
	}
	for _, pod := range pods {
		if err := r.pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	prepare(r.cluster)
	r.Policies = newPolicies(refusal.NewWaiting(corelisters.NewPodLister(r.pods), func(pods map[string]*corev1.Pod) {
		// The queue asks plugins while it takes pods in.
		for _, pod := range pods {
			_, _ = r.Governing(pod)
		}
		r.woken <- slices.Sorted(maps.Keys(pods))
	}))
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.watch(ctx, r.cluster)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		r.cluster.Shutdown()
	})
	return r
}

// wakes wants just these pods to be woken next.
func (r *rig) wakes(uids ...string) {
	r.t.Helper()
	select {
	case got := <-r.woken:
		if !slices.Equal(got, uids) {
			r.t.Fatalf("woken are %q, want %q", got, uids)
		}
	case <-time.After(limit):
		r.t.Fatalf("nobody is woken, want %q", uids)
	}
}

// governs waits for the policy to govern the pod; "" is none.
func (r *rig) governs(name string, p *corev1.Pod) {
	r.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		got, err := r.Governing(p)
		if err == nil && (got == nil) == (name == "") && (got == nil || got.Name == name) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("got %v, %v, want %q", got, err, name)
		}
	}
}

// refuses waits for the policies to be unreadable.
func (r *rig) refuses(p *corev1.Pod) {
	r.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		got, err := r.Governing(p)
		if err != nil && !errors.Is(err, errUnread) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("got %v, %v, want an error of reading", got, err)
		}
	}
}

func installed(c *cluster) { c.there = true }

func pod(namespace, name, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{"app": app}}}
}

func bound(p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeName = "node"
	return p
}

// policy selects the pods of an app; each generation has another level.
func policy(name, app string, generation int64) *placementv1alpha1.PlacementPolicy {
	return &placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: generation},
		Spec: placementv1alpha1.PlacementPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			Levels:      []placementv1alpha1.Level{{Property: "zone"}},
		},
	}
}

func TestChangesWakeThePodsTheyConcern(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web, pod("ns", "db", "db"), pod("elsewhere", "far", "web"), bound(pod("ns", "bound", "web")))
	r.wakes("db", "far", "web") // known for the first time
	r.cluster.Add(policy("b", "web", 1))
	r.wakes("web")
	r.governs("b", web)
	r.cluster.Modify(policy("b", "web", 2))
	r.wakes("web")
	r.cluster.Add(policy("a", "web", 1)) // comes before b
	r.wakes("web")
	r.governs("a", web)
	r.cluster.Add(policy("c", "web", 1)) // governs nothing, and wakes nobody
	r.cluster.Modify(policy("a", "db", 2))
	r.wakes("db", "web")
	r.governs("b", web)
	r.cluster.Delete(policy("b", "web", 2))
	r.wakes("web")
	r.governs("c", web)
}

// The controller writes the status of each policy; that must wake nobody.
func TestStatusWakesNobody(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web)
	r.wakes("web")
	r.cluster.Add(policy("a", "web", 1))
	r.wakes("web")
	reported := policy("a", "web", 1)
	reported.Status.GovernedPods = 1
	r.cluster.Modify(reported)
	r.cluster.Modify(policy("a", "web", 2))
	r.wakes("web")
	select {
	case uids := <-r.woken:
		t.Errorf("%q were woken once more", uids)
	default:
	}
}

func TestInstalledLaterAndRemoved(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, func(*cluster) {}, web)
	r.wakes("web")
	r.governs("", web)
	r.cluster.Add(policy("a", "web", 1))
	r.cluster.set(func() { r.cluster.there = true })
	r.wakes("web")
	r.governs("a", web)
	// Nobody says that policies are deleted; the next list finds no kind.
	r.cluster.set(func() {
		r.cluster.there = false
		r.cluster.listErr = apierrors.NewNotFound(placementv1alpha1.Resource(placementv1alpha1.PlacementPolicyResource), "")
	})
	r.cluster.ResetWatch()
	r.wakes("web")
	r.governs("", web)
	r.cluster.set(func() { r.cluster.there, r.cluster.listErr = true, nil })
	r.wakes("web")
	r.governs("a", web)
}

// A scheduler that may not read policies must not place pods as if there were none.
func TestUnreadable(t *testing.T) {
	web := pod("ns", "web", "web")
	forbidden := apierrors.NewForbidden(placementv1alpha1.Resource(placementv1alpha1.PlacementPolicyResource), "", errors.New("no right"))
	for name, tc := range map[string]struct{ prepare, later func(*cluster) }{
		"no answer": {prepare: func(c *cluster) { c.answerErr = errors.New("no right") }},
		"no list":   {prepare: func(c *cluster) { c.there, c.listErr = true, forbidden }},
		// That there was no kind must not stand for what it has now.
		"installed later, no list": {func(*cluster) {}, func(c *cluster) { c.there, c.listErr = true, forbidden }},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, tc.prepare, web)
			if tc.later != nil {
				r.wakes("web")
				r.governs("", web)
				r.cluster.set(func() { tc.later(r.cluster) })
				r.refuses(web)
			}
			if p, err := r.Await(t.Context(), web); err == nil || !strings.Contains(err.Error(), "no right") || !strings.Contains(err.Error(), "PlacementPolicies cannot be read") {
				t.Errorf("got %v, %v", p, err)
			}
			r.cluster.set(func() { r.cluster.there, r.cluster.answerErr, r.cluster.listErr = true, nil, nil })
			r.wakes("web")
			r.governs("", web)
		})
	}
}

// What was known holds while the API server cannot be read.
func TestKnownHoldsThroughAnOutage(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web)
	r.wakes("web")
	r.cluster.Add(policy("a", "web", 1))
	r.wakes("web")
	r.unreadable(errors.New("outage"))
	r.governs("a", web)
}

// The pods of a DaemonSet are placed by no policy: while policies cannot be read a new
// node would otherwise wait for its network for ever. They do not even wait for an answer.
func TestRegression_DaemonSetsWithoutPolicies(t *testing.T) {
	p := newPolicies(nil) // nobody will ever read any
	daemon := pod("ns", "p", "web")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cni", Controller: new(true)}}
	asked := time.Now()
	if got, err := p.Await(t.Context(), daemon); got != nil || err != nil || time.Since(asked) >= awaitFor {
		t.Errorf("got %v, %v after %v", got, err, time.Since(asked))
	}
	if got, err := p.Placing(daemon); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := p.Placing(pod("ns", "p", "web")); !errors.Is(err, errUnread) {
		t.Errorf("a pod of anything else: %v", err)
	}
	known := Fixed(clusterview.ReadPolicy(policy("one", "web", 1)), clusterview.ReadPolicy(policy("two", "web", 1)))
	before := conflicts(t)
	got, err := known.Await(t.Context(), daemon)
	if known.NoteRivals(got, daemon); got != nil || err != nil || conflicts(t) != before {
		t.Errorf("it is placed by %v, %v, and %v conflicts were counted", got, err, conflicts(t)-before)
	}
}

// What a pod is told names what mends it.
func TestRefusalsNameTheMend(t *testing.T) {
	p := newPolicies(nil)
	for range 2 {
		if _, err := p.Governing(pod("ns", "p", "web")); err == nil || !strings.Contains(err.Error(), "right to list and watch placementpolicies") {
			t.Errorf("got %v", err)
		}
		p.unreadable(errors.New("no right"))
	}
}

func TestAwait(t *testing.T) {
	p := newPolicies(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Await(ctx, pod("ns", "p", "web")); !errors.Is(err, errUnread) {
		t.Errorf("before anything is known: %v", err)
	}
	if got, err := Fixed().Await(t.Context(), pod("ns", "p", "web")); got != nil || err != nil {
		t.Errorf("without policies: %v, %v", got, err)
	}
}

// absent is an API server that never has the kind, and tells when it is asked for it.
type absent struct {
	*apiServer
	asked chan time.Time
}

func (a *absent) installed(context.Context) (bool, error) {
	a.asked <- time.Now()
	return false, nil
}

// The README says how often.
func TestAsksForTheKindEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server, ended := &absent{asked: make(chan time.Time)}, make(chan struct{})
		go func() {
			defer close(ended)
			Fixed().watch(ctx, server)
		}()
		last := <-server.asked
		for range 3 {
			at := <-server.asked
			if pause := at.Sub(last); pause != 5*time.Second {
				t.Errorf("it asks again after %s", pause)
			}
			last = at
		}
		cancel()
		<-ended
	})
}
