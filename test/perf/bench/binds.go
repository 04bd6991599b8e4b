// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// stall is how long nothing may be bound before a run is given up.
const stall = 2 * time.Minute

// binds tells of the measured pods that have been bound, each once.
type binds struct {
	watcher *watchtools.RetryWatcher
	seen    map[string]bool
	// first and last are when the first and the latest were heard of.
	first, last time.Time
	// waste is where pods that may be deleted are offered, nil for nowhere.
	waste chan<- string
}

// watchBinds watches from now on.
func (w *World) watchBinds(ctx context.Context) (*binds, error) {
	pods := w.client.CoreV1().Pods(namespace)
	now, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("watching pods in %s: %w", namespace, err)
	}
	lw := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = "spec.nodeName!="
		return pods.Watch(ctx, o)
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, lw)
	if err != nil {
		return nil, fmt.Errorf("watching pods in %s: %w", namespace, err)
	}
	return &binds{watcher: watcher, seen: map[string]bool{}, last: time.Now()}, nil
}

func (b *binds) stop() { b.watcher.Stop() }

// until waits until so many pods in all have been bound.
func (b *binds) until(ctx context.Context, count int, r *running, progress Progress) error {
	stalled := time.NewTimer(stall)
	defer stalled.Stop()
	report := time.NewTicker(time.Second)
	defer report.Stop()
	for len(b.seen) < count {
		select {
		case event, open := <-b.watcher.ResultChan():
			if !open {
				return errors.New("the watch of pods ended: their binding cannot be measured")
			}
			fresh, err := b.take(event)
			if err != nil {
				return err
			}
			if fresh {
				stalled.Reset(stall)
			}
		case <-report.C:
			progress(len(b.seen), count, "pods bound by "+r.Name)
		case <-stalled.C:
			return fmt.Errorf("%s has bound nothing for %s, and %d of %d in all; the end of %s:\n%s", r.Name, stall, len(b.seen), count, r.Log, r.Tail(12))
		case <-r.Done():
			return r.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// take notes one event and says whether it is of a pod not heard of before.
func (b *binds) take(event watch.Event) (fresh bool, err error) {
	switch object := event.Object.(type) {
	case *corev1.Pod:
		if object.Spec.NodeName == "" || b.seen[object.Name] {
			return false, nil
		}
		b.seen[object.Name], b.last = true, time.Now()
		if len(b.seen) == 1 {
			b.first = b.last
		}
		select {
		case b.waste <- object.Name:
		default:
		}
		return true, nil
	case *metav1.Status:
		return false, fmt.Errorf("watching pods: %s", object.Message)
	case runtime.Object:
		return false, nil // a bookmark
	default:
		return false, fmt.Errorf("watching pods: %T is no event", event.Object)
	}
}
