// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// kubeletWarnings are the events that can be failures. The API server sends no others:
// a scheduler's own about pods that wait are by far the most.
var kubeletWarnings = fields.Set{"involvedObject.kind": "Pod", "type": corev1.EventTypeWarning, "source": "kubelet"}.String()

// asking is the time between two tries of a scheduler that may not read events.
const asking = time.Minute

// warnings tells the warnings of kubelets about pods. It keeps none of them.
type warnings struct {
	client  kubernetes.Interface
	profile string
	clock   clock.Clock
	// seen is called for each, again when it is repeated or read again.
	seen func(*corev1.Event)
	// listed is called when all that there were have been seen, or cannot be.
	listed func()
}

// watch runs as long as the context lasts. A scheduler that may not read events knows
// less, and works: it says so once, and asks again now and then.
func (w *warnings) watch(ctx context.Context) {
	said := false
	for ctx.Err() == nil {
		forbidden := w.follow(ctx)
		if forbidden == nil {
			return
		}
		if !said {
			said = true
			klog.FromContext(ctx).Error(forbidden, "Events cannot be read: failures that kubelets report by events alone are not seen; give the scheduler the right to list and watch events")
		}
		w.listed()
		select {
		case <-ctx.Done():
		case <-w.clock.After(asking):
		}
	}
}

// follow watches until the context ends, or it is forbidden to: then it returns the
// refusal. A reflector left running would log it twice a minute.
func (w *warnings) follow(ctx context.Context) (forbidden error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	note := func(err error) {
		if err == nil || ctx.Err() != nil {
			return
		}
		sourceErrorsTotal.WithLabelValues(w.profile, sourceEvents).Inc()
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			end(err)
		}
	}
	events := w.client.CoreV1().Events(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = kubeletWarnings
			list, err := events.List(ctx, options)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = kubeletWarnings
			events, err := events.Watch(ctx, options)
			note(err)
			return events, err
		},
	}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, w.client), &corev1.Event{}, w,
		cache.ReflectorOptions{Name: "faultcache/events"}).RunWithContext(ctx)
	if err := context.Cause(ctx); apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}

func (w *warnings) pass(obj any) error {
	if event, ok := obj.(*corev1.Event); ok {
		w.seen(event)
	}
	return nil
}

// Add takes an event that is new.
func (w *warnings) Add(obj any) error { return w.pass(obj) }

// Update takes an event that was repeated.
func (w *warnings) Update(obj any) error { return w.pass(obj) }

// Delete takes an event that has expired: what it said stays said.
func (w *warnings) Delete(any) error { return nil }

// Replace takes all events that there are.
func (w *warnings) Replace(list []any, _ string) error {
	for _, obj := range list {
		_ = w.pass(obj)
	}
	w.listed()
	return nil
}

// Resync does nothing: nothing is kept.
func (w *warnings) Resync() error { return nil }
