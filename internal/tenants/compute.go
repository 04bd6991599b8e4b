// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"hash/maphash"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
)

// debounce is how long the order holds at least. It is computed at once when something changes after that. It is the length
// of Treadmill's cycle.
const debounce = 2 * time.Second

// run computes the order until the context ends, once everything has been seen that is there.
func (t *Tenants) run(ctx context.Context, synced []cache.InformerSynced) {
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return
	}
	var overdue <-chan time.Time // when those that were let in are waited for no more, if others are kept out
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		case <-overdue:
		}
		if t.Err() != nil {
			continue // whoever comes to know more says that something has changed
		}
		t.Compute()
		if overdue = nil; t.full() {
			overdue = time.After(untriedTimeout)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(debounce):
		}
	}
}

// Compute computes the order now, and puts the pods into the queue for which that makes a difference. Those of For do it by themselves.
func (t *Tenants) Compute() {
	start := time.Now()
	all, err := t.pods.List(labels.Everything())
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	nodes, err := t.nodes.List(labels.Everything())
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	t.mu.RLock()
	claims, last, evicted := t.claims, t.order, maps.Clone(t.deleted)
	placed := make(map[types.UID]bool, len(t.reserved))
	for uid := range t.reserved {
		placed[uid] = true
	}
	schedulers := make(map[string]bool, len(t.schedulers))
	for name := range t.schedulers {
		schedulers[name] = true
	}
	t.mu.RUnlock()
	order := claims.Arrange(allocations.Cluster{
		Nodes: nodes, Pods: all, Schedules: func(name string) bool { return schedulers[name] },
		Placed: func(pod *corev1.Pod) bool { return placed[pod.UID] }, Last: last,
		Evicted: func(uid types.UID) bool { return evicted[uid] },
	})
	observe(order, time.Since(start))
	if woken := t.replace(order, all); len(woken) > 0 {
		t.activate(woken)
	}
}

// replace has an order hold, and returns the pods that are to be put into the queue.
func (t *Tenants) replace(order *allocations.Order, all []*corev1.Pod) map[string]*corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order = order
	t.version++
	t.bindingsSeenLocked(all)
	t.forgetEvictedLocked(all)
	t.turns = turnsOf(order)
	woken := make(map[string]*corev1.Pod)
	forgotten := t.forgetTriedLocked(all, woken)
	windows := make(map[string]*window)
	for _, q := range order.Queues {
		w := t.windows[q.Partition.Name]
		if w == nil {
			w = newWindow()
		}
		windows[q.Partition.Name] = w
		w.renew(q, t.isReserved)
		for _, pod := range w.slide(t.isReserved) {
			if forgotten[pod.UID] {
				woken[string(pod.UID)] = pod // the others are held, or about to ask
			}
		}
		t.wakeTriedLocked(q, woken)
	}
	t.windows = windows
	for uid, pod := range t.retry {
		woken[string(uid)] = pod
	}
	clear(t.retry)
	for uid, pod := range t.held {
		if !t.order.Has(uid) && !t.waits(pod) {
			delete(t.held, uid)
			continue
		}
		// Most wait behind a full window: of thousands it is not written down why.
		if !t.shutOutLocked(pod) && t.admitLocked(pod) == nil {
			woken[string(uid)] = pod
		}
	}
	return woken
}

// waits reports whether a pod is there, and may be given a node some time. The queue may ask about one that has just gone: it was held for ever then, and had
// the order computed again and again.
func (t *Tenants) waits(pod *corev1.Pod) bool {
	is, err := t.pods.Pods(pod.Namespace).Get(pod.Name)
	return err == nil && is.UID == pod.UID && is.Spec.NodeName == "" && is.DeletionTimestamp == nil && is.Status.Phase != corev1.PodSucceeded && is.Status.Phase != corev1.PodFailed
}

// forgetTriedLocked has the windows let pods in anew that were tried, if Partitions, Allocations or namespaces are others, or nodes are open to
// them that were not: they may find a place now. It returns these. Those that are in no order any more are added to the woken, as no window lets them in.
func (t *Tenants) forgetTriedLocked(all []*corev1.Pod, woken map[string]*corev1.Pod) map[types.UID]bool {
	if !t.anew {
		return nil
	}
	t.anew = false
	clear(t.tried)
	forgotten := make(map[types.UID]bool)
	for _, w := range t.windows {
		for uid, since := range w.in {
			if since.IsZero() {
				forgotten[uid] = true
				delete(w.in, uid)
			}
		}
	}
	for _, pod := range all {
		if forgotten[pod.UID] && pod.Spec.NodeName == "" && !t.order.Has(pod.UID) {
			woken[string(pod.UID)] = pod
		}
	}
	return forgotten
}

// anyTriedLocked reports whether a pod was let in and tried, and has no node.
func (t *Tenants) anyTriedLocked() bool {
	for _, w := range t.windows {
		if w.untried < len(w.in) {
			return true
		}
	}
	return false
}

// seed is that of the hash of what runs after a pod.
var seed = maphash.MakeSeed()

// wakeTriedLocked adds pods that found no place when other pods ran after them than now. Those are the ones that may make way. The first in
// the order come first, and no more than a window of them at a time: the others with the next order.
func (t *Tenants) wakeTriedLocked(q *allocations.Queue, woken map[string]*corev1.Pod) {
	after := runningAfter(q)
	n := 0
	for i := range q.Entries {
		e := &q.Entries[i]
		was, tried := t.tried[e.Object.UID]
		if e.Pod.Placed || !tried || after[i] == 0 || after[i] == was {
			continue
		}
		if n++; n > windowSize {
			t.dirty()
			return
		}
		delete(t.tried, e.Object.UID)
		woken[string(e.Object.UID)] = e.Object
	}
}

// runningAfter tells for each entry which pods run after it: another number if they are others, and 0 if there are none.
func runningAfter(q *allocations.Queue) []uint64 {
	after, sum := make([]uint64, len(q.Entries)), uint64(0)
	for i := len(q.Entries) - 1; i >= 0; i-- {
		after[i] = sum
		if e := &q.Entries[i]; e.Pod.Placed {
			sum += maphash.String(seed, string(e.Object.UID)) | 1
		}
	}
	return after
}

// FoundNoPlace notes that a pod was tried at its place in the order, or a group at that of the last of its pods, and that nobody can make way
// as things are.
func (t *Tenants) FoundNoPlace(at allocations.Place, pods ...*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.triedInVainLocked(pods)
	t.tried[at.Entry().Object.UID] = t.afterLocked(at) // the queue has a group tried again with any of its pods
}

// afterLocked is runningAfter of one place, of the order that holds. Of another one it is 0, so that the pod is tried again.
func (t *Tenants) afterLocked(at allocations.Place) uint64 {
	w := t.windows[at.Partition.Name]
	if w == nil || w.queue != at.Queue {
		return 0
	}
	if w.after == nil {
		w.after = runningAfter(at.Queue)
	}
	return w.after[at.Index]
}

// Retry has a pod tried again when the order has been computed anew.
func (t *Tenants) Retry(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retry[pod.UID] = pod
	t.dirty()
}
