// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// debouncer holds the pods of a batch together until none has come for a window,
// or the first has waited for the longest delay. SwarmKit restarts the window at
// every commit to its store, so that a busy store delays everybody; here only
// pods of the batch itself do.
type debouncer struct {
	window, maxDelay time.Duration
	clock            clock.WithDelayedExecution
	// activate puts pods, by any name, into the scheduling queue. It calls admit for
	// each of them before it returns, so no lock may be held around it.
	activate func(map[string]*corev1.Pod)

	mu sync.Mutex // guards waiting, released
	// waiting are the batches that are not complete.
	waiting map[batchKey]*waitingBatch
	// released are the pods that activate is about to ask admit for.
	released map[types.UID]bool
}

type waitingBatch struct {
	first, last time.Time // arrivals
	pods        map[string]*corev1.Pod
}

func newDebouncer(window, maxDelay time.Duration, c clock.WithDelayedExecution, activate func(map[string]*corev1.Pod)) *debouncer {
	return &debouncer{
		window: window, maxDelay: maxDelay, clock: c, activate: activate,
		waiting: make(map[batchKey]*waitingBatch), released: make(map[types.UID]bool),
	}
}

func (d *debouncer) enabled() bool { return d.window > 0 }

// admit lets a pod pass whose batch has been released, and makes any other wait.
func (d *debouncer) admit(key batchKey, pod *corev1.Pod) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.released[pod.UID] {
		return true
	}
	now := d.clock.Now()
	b, ok := d.waiting[key]
	if !ok {
		b = &waitingBatch{first: now, pods: make(map[string]*corev1.Pod)}
		d.waiting[key] = b
		d.clock.AfterFunc(min(d.window, d.maxDelay), func() { d.expire(key) })
	}
	if _, again := b.pods[string(pod.UID)]; !again {
		b.last = now
	}
	b.pods[string(pod.UID)] = pod
	return false
}

// due is when a batch is complete.
func (d *debouncer) due(b *waitingBatch) time.Time {
	quiet, latest := b.last.Add(d.window), b.first.Add(d.maxDelay)
	if latest.Before(quiet) {
		return latest
	}
	return quiet
}

// expire releases a batch, or comes back when pods have come in the meantime.
func (d *debouncer) expire(key batchKey) {
	d.mu.Lock()
	b := d.waiting[key]
	if left := d.due(b).Sub(d.clock.Now()); left > 0 {
		d.clock.AfterFunc(left, func() { d.expire(key) })
		d.mu.Unlock()
		return
	}
	delete(d.waiting, key)
	for _, pod := range b.pods {
		d.released[pod.UID] = true
	}
	d.mu.Unlock()

	d.activate(b.pods)

	// Pods that were deleted while they waited were never asked for.
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, pod := range b.pods {
		delete(d.released, pod.UID)
	}
}
