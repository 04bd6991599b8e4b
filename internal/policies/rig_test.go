// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2/ktesting"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
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

// Add, Modify and Delete have the API server say so, in its own words.
func (c *cluster) Add(o runtime.Object)    { c.FakeControllerSource.Add(said(o)) }
func (c *cluster) Modify(o runtime.Object) { c.FakeControllerSource.Modify(said(o)) }
func (c *cluster) Delete(o runtime.Object) { c.FakeControllerSource.Delete(said(o)) }

// said is an object as an API server serves it.
func said(o runtime.Object) runtime.Object {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func (c *cluster) Installed(context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.there, c.answerErr
}

func (c *cluster) ListWatch(read func()) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			c.mu.Lock()
			err := c.listErr
			c.mu.Unlock()
			if err != nil {
				return nil, err
			}
			read()
			return c.List(o)
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) { return c.Watch(o) },
	}, c)
}

func (c *cluster) Pause() time.Duration { return time.Millisecond }

// IsWatchListSemanticsUnSupported tells the informer to list before it watches.
func (c *cluster) IsWatchListSemanticsUnSupported() bool { return true }

// rig is policies that watch a cluster, among pods that wait.
type rig struct {
	*Policies
	testing.TB
	cluster *cluster
	pods    cache.Indexer
	woken   chan []string // UIDs, sorted
}

func start(t *testing.T, prepare func(*cluster), pods ...*corev1.Pod) *rig {
	t.Helper()
	r := &rig{
		TB: t, cluster: &cluster{FakeControllerSource: fcache.NewFakeControllerSource()},
		pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), woken: make(chan []string, 100),
	}
	for _, pod := range pods {
		must(t, r.pods.Add(pod))
	}
	prepare(r.cluster)
	r.Policies = newPolicies(refusal.NewWaiting(corelisters.NewPodLister(r.pods), func(pods map[string]*corev1.Pod) {
		// The queue asks plugins while it takes pods in.
		for _, pod := range pods {
			_, _ = r.Governing(pod)
		}
		r.woken <- slices.Sorted(maps.Keys(pods))
	}))
	r.of[ofCluster].Settle()                       // there are none, unless a test adds some
	r.edits.backoff = flowcontrol.NewBackOff(0, 0) // each edit wakes
	r.of[ofNamespace].ForbiddenFor = 0             // and each lack of a right is believed
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.of[ofNamespace].Watch(ctx, r.cluster)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		r.edits.stop()
		r.cluster.Shutdown()
	})
	return r
}

// wakes wants just these pods to be woken next.
func (r *rig) wakes(uids ...string) *rig {
	r.Helper()
	select {
	case got := <-r.woken:
		if !slices.Equal(got, uids) {
			r.Fatalf("woken are %q, want %q", got, uids)
		}
	case <-time.After(limit):
		r.Fatalf("nobody is woken, want %q", uids)
	}
	return r
}

// governs waits for the policy to govern the pod; "" is none.
func (r *rig) governs(name string, p *corev1.Pod) {
	r.Helper()
	r.until(p, fmt.Sprintf("want %q", name), func(got *clusterview.Policy, err error) bool {
		return err == nil && (got == nil) == (name == "") && (got == nil || got.Name == name)
	})
}

// refuses waits for the policies to be unreadable.
func (r *rig) refuses(p *corev1.Pod) {
	r.Helper()
	r.until(p, "want an error of reading", func(_ *clusterview.Policy, err error) bool {
		return err != nil && !errors.Is(err, optionalkind.ErrUnread)
	})
}

// until waits for what governs the pod to be what is wanted.
func (r *rig) until(p *corev1.Pod, want string, is func(*clusterview.Policy, error) bool) {
	r.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		got, err := r.Governing(p)
		if is(got, err) {
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("got %v, %v, %s", got, err, want)
		}
	}
}

var must = placementtest.Must

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
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Levels: []placementv1alpha1.Level{{TopologyKey: "zone"}},
		},
	}
}
