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
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Bindings remembers every pod of a namespace that there has ever been, and when it was first
// seen on its node, which never changes. It outlives a restart of the API server.
type Bindings struct {
	mu    sync.Mutex // guards bound, times
	bound map[types.UID]bool
	times []time.Time // of first nodes, in order
}

// WatchBindings remembers from now on until ctx ends, and returns when the watch
// stands. Stop waits for the end.
func WatchBindings(ctx context.Context, client kubernetes.Interface, namespace string) (b *Bindings, stop func(), err error) {
	b = &Bindings{bound: map[types.UID]bool{}}
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
	was, is := b.bound[pod.UID], pod.Spec.NodeName != ""
	if is && !was {
		b.times = append(b.times, time.Now())
	}
	b.bound[pod.UID] = was || is
}

// Bound is the number of pods ever seen, and of those that ever had a node.
func (b *Bindings) Bound() (pods, bound int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.bound), len(b.times)
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

// AnnouncedTwice waits until events say of half of so many pods of a namespace that they were
// scheduled, and names those of which that was said more than once. Of all of them nobody can
// wait to hear: what a scheduler was about to say dies with it.
func AnnouncedTwice(ctx context.Context, client kubernetes.Interface, namespace string, pods int, timeout time.Duration) (twice []string, err error) {
	err = Poll(ctx, timeout, 100*time.Millisecond, fmt.Sprintf("announcements of half of %d pods in %s", pods, namespace), func() error {
		events, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing the events of %s: %w", namespace, err)
		}
		var announced int
		if announced, twice = announcements(events.Items); announced < pods/2 {
			return fmt.Errorf("%d are announced", announced)
		}
		return nil
	})
	return twice, err
}

// announcements is the number of pods that were announced, and names those that were more than
// once: by another event, or by the same process with the same words, which then raises the
// count of the event that is there.
func announcements(events []eventsv1.Event) (pods int, twice []string) {
	times, names := map[types.UID]int{}, map[types.UID]string{}
	for i := range events {
		if events[i].Reason != "Scheduled" {
			continue
		}
		said := 1
		if series := events[i].Series; series != nil {
			said = max(said, int(series.Count))
		}
		pod := events[i].Regarding
		times[pod.UID] += said
		names[pod.UID] = pod.Name
	}
	for uid, n := range times {
		if n > 1 {
			twice = append(twice, fmt.Sprintf("pod %s (%s) was announced as scheduled %d times", names[uid], uid, n))
		}
	}
	slices.Sort(twice)
	return len(times), twice
}
