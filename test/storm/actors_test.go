// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// breath is the time between two deeds of one actor: all of them together do some
// thousand a second.
const breath = 4 * time.Millisecond

// actor changes the cluster, one deed after the other, as its own random numbers say.
type actor struct {
	*testing.T
	*rand.Rand
	server *apiServer
	// pods are the scheduler's own, not yet as they are now.
	pods  corelisters.PodLister
	deeds map[string]func(context.Context)
	name  string
	born  int
	done  *tally
}

// tally is how often an actor did what.
type tally struct {
	mu    sync.Mutex // guards times
	times map[string]int
}

// tallyOf begins a tally: nothing has been done.
func tallyOf(deeds map[string]func(context.Context)) *tally {
	c := &tally{times: make(map[string]int)}
	for deed := range deeds {
		c.times[deed] = 0
	}
	return c
}

func (c *tally) count(deed string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[deed]++
}

// undone are the deeds that were never done.
func (c *tally) undone() (deeds []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for deed, times := range c.times {
		if times == 0 {
			deeds = append(deeds, deed)
		}
	}
	return deeds
}

// act does deeds until the context ends.
func (a *actor) act(ctx context.Context) {
	names := slices.Sorted(maps.Keys(a.deeds))
	pace := time.NewTicker(breath)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
			name := oneOf(a, names...)
			a.deeds[name](ctx)
			a.done.count(name)
		}
	}
}

// must takes what may happen to anybody among many: an object is gone, there already, or has changed.
func (a *actor) must(err error) {
	a.Helper()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		a.Errorf("%s: %v", a.name, err)
	}
}

func (a *actor) rarely(n int) bool { return a.IntN(n) == 0 }

// fresh is a name that nobody had before.
func (a *actor) fresh(what string) string {
	a.born++
	return fmt.Sprintf("%s-%s-%d", what, a.name, a.born)
}

func oneOf[T any](a *actor, of ...T) T { return of[a.IntN(len(of))] }

// somePod is one that fits, nil if there is none.
func (a *actor) somePod(fits func(*corev1.Pod) bool) *corev1.Pod {
	all, err := a.pods.List(labels.Everything())
	a.must(err)
	all = slices.DeleteFunc(all, func(p *corev1.Pod) bool { return !fits(p) })
	if len(all) == 0 {
		return nil
	}
	return oneOf(a, all...)
}

// crowded reports that there are pods enough, or that enough of them wait.
func (a *actor) crowded() bool {
	all, err := a.pods.List(labels.Everything())
	a.must(err)
	waiting := 0
	for _, p := range all {
		if p.Spec.NodeName == "" {
			waiting++
		}
	}
	return len(all) > 300 || waiting > 80
}

func (a *actor) deletePod(ctx context.Context, name string) {
	a.must(a.server.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

// changePod changes a pod as it is now, unless it is gone.
func (a *actor) changePod(ctx context.Context, name string, change func(*corev1.Pod)) {
	api := a.server.CoreV1().Pods(namespace)
	pod, err := api.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		change(pod)
		_, err = api.Update(ctx, pod, metav1.UpdateOptions{})
	}
	a.must(err)
}

// changeNode changes a node as it is now, unless it is gone.
func (a *actor) changeNode(ctx context.Context, change func(*corev1.Node)) {
	api := a.server.CoreV1().Nodes()
	node, err := api.Get(ctx, a.nodeName(), metav1.GetOptions{})
	if err == nil {
		change(node)
		_, err = api.Update(ctx, node, metav1.UpdateOptions{})
	}
	a.must(err)
}

func (a *actor) nodeName() string { return nodeName(a.IntN(nodes)) }
