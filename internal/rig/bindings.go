// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Bindings remembers every node that every pod of a namespace has ever been on, and
// when it was first seen there. It outlives a restart of the API server.
type Bindings struct {
	mu    sync.Mutex // guards nodes, times
	nodes map[types.UID]map[string]bool
	times []time.Time // of first nodes, in order
}

// WatchBindings remembers from now on until ctx ends, and returns when the watch
// stands. Stop waits for the end.
func WatchBindings(ctx context.Context, client kubernetes.Interface, namespace string) (b *Bindings, stop func(), err error) {
	b = &Bindings{nodes: map[types.UID]map[string]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: b.saw, UpdateFunc: func(_, obj any) { b.saw(obj) }}); err != nil {
		return nil, nil, fmt.Errorf("watching the pods of %s: %w", namespace, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop = func() { cancel(); factory.Shutdown() }
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		stop()
		return nil, nil, errors.New("watching the pods of " + namespace + ": the watch did not start")
	}
	return b, stop, nil
}

func (b *Bindings) saw(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[pod.UID] == nil {
		b.nodes[pod.UID] = map[string]bool{}
	}
	if pod.Spec.NodeName == "" {
		return
	}
	if len(b.nodes[pod.UID]) == 0 {
		b.times = append(b.times, time.Now())
	}
	b.nodes[pod.UID][pod.Spec.NodeName] = true
}

// Bound is the number of pods ever seen, and of those that ever had a node.
func (b *Bindings) Bound() (pods, bound int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.nodes), len(b.times)
}

// Moved names the pods that were seen on more than one node, which nobody must see.
func (b *Bindings) Moved() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var moved []string
	for uid, nodes := range b.nodes {
		if len(nodes) > 1 {
			moved = append(moved, fmt.Sprintf("pod %s was on %d nodes: %v", uid, len(nodes), nodes))
		}
	}
	slices.Sort(moved)
	return moved
}

// LongestGap is the longest time after a moment in which no pod got a node, up to the
// last that did.
func (b *Bindings) LongestGap(since time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var longest time.Duration
	for _, at := range b.times {
		if at.After(since) {
			longest = max(longest, at.Sub(since))
			since = at
		}
	}
	return longest
}

// Last is when the last pod so far got its node.
func (b *Bindings) Last() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.times) == 0 {
		return time.Time{}
	}
	return b.times[len(b.times)-1]
}

// AnnouncedTwice names the pods of a namespace of which more than one event says that
// they were scheduled.
func AnnouncedTwice(ctx context.Context, client kubernetes.Interface, namespace string) ([]string, error) {
	events, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the events of %s: %w", namespace, err)
	}
	times := map[types.UID]int{}
	var twice []string
	for i := range events.Items {
		pod := events.Items[i].Regarding
		if events.Items[i].Reason != "Scheduled" {
			continue
		}
		if times[pod.UID]++; times[pod.UID] == 2 {
			twice = append(twice, fmt.Sprintf("pod %s (%s) was announced as scheduled more than once", pod.Name, pod.UID))
		}
	}
	slices.Sort(twice)
	return twice, nil
}
