// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
)

// windowSize is how many pods of a partition are in the scheduling queue at a time, and have not been tried. A scheduler tries as many
// in a fraction of a second.
const windowSize = 128

// untriedTimeout is how long a pod that was let in may be untried and keep others out. Another plugin holds one for longer, for a resource claim that is
// not there or the rest of its group.
const untriedTimeout = 10 * time.Second

// window is the pods of a partition that are let in.
type window struct {
	queue *allocations.Queue
	after []uint64 // runningAfter of the queue, if it was asked for
	// next is the first entry of the queue that was not looked at for being let in.
	next int
	// in are the pods that were let in and have no node, with when that was. It is zero for those that were tried, or are waited for no more.
	in map[types.UID]time.Time
	// untried is how many are not zero.
	untried int
}

func newWindow() *window { return &window{in: make(map[types.UID]time.Time)} }

// renew begins with the order that holds now. Pods that were let in stay in, if they still wait. Those that have not been tried, and must not be any
// more, do not: they would keep others out.
func (w *window) renew(q *allocations.Queue, reserved func(types.UID) bool) {
	w.queue, w.after, w.next = q, nil, 0
	waiting := make(map[types.UID]time.Time, len(w.in))
	for i := range q.Entries {
		if uid := q.Entries[i].Object.UID; !q.Entries[i].Pod.Placed && !reserved(uid) {
			if since, in := w.in[uid]; in && (since.IsZero() || (allocations.Place{Queue: q, Index: i}).Why() == nil) {
				waiting[uid] = since
			}
		}
	}
	w.in, w.untried = waiting, 0
	for uid, since := range waiting {
		if time.Since(since) < untriedTimeout {
			w.untried++
		} else {
			waiting[uid] = time.Time{}
		}
	}
}

// slide lets in as many pods as there is room for, in their order, and returns them. A pod that was reserved since the order began to be
// computed is not let in again: it would never be tried, and take the room of others.
func (w *window) slide(reserved func(types.UID) bool) (let []*corev1.Pod) {
	if w.queue == nil {
		return nil
	}
	groups := make(map[string]bool)
	for ; w.untried < windowSize && w.next < len(w.queue.Entries); w.next++ {
		e := &w.queue.Entries[w.next]
		if !w.waits(w.next, reserved) {
			continue
		}
		if w.let(e.Object.UID) {
			let = append(let, e.Object)
		}
		if g := groupOf(e.Object); g != "" {
			groups[g] = true
		}
	}
	if len(groups) == 0 {
		return let
	}
	// A group of pods is one thing to the queue: those of its pods that come later are let in with the first.
	for i := w.next; i < len(w.queue.Entries); i++ {
		if e := &w.queue.Entries[i]; groups[groupOf(e.Object)] && w.waits(i, reserved) && w.let(e.Object.UID) {
			let = append(let, e.Object)
		}
	}
	return let
}

// waits reports whether an entry is one of a pod that may be tried.
func (w *window) waits(index int, reserved func(types.UID) bool) bool {
	e := &w.queue.Entries[index]
	return !e.Pod.Placed && !reserved(e.Object.UID) && (allocations.Place{Queue: w.queue, Index: index}).Why() == nil
}

// groupOf names the group in which a pod is placed, "" for none.
func groupOf(pod *corev1.Pod) string {
	if name := clusterview.SchedulingGroup(pod); name != "" {
		return pod.Namespace + "/" + name
	}
	return ""
}

// let lets a pod in, and reports whether it was not.
func (w *window) let(uid types.UID) bool {
	if _, in := w.in[uid]; in {
		return false
	}
	w.in[uid] = time.Now()
	w.untried++
	return true
}

// tried notes that a pod was taken from the queue. It is in from then on: one that no window let in any more may have been in the queue still.
func (w *window) tried(uid types.UID) {
	if !w.in[uid].IsZero() {
		w.untried--
	}
	w.in[uid] = time.Time{}
}

// leave notes that a pod does not wait any more.
func (w *window) leave(uid types.UID) {
	w.tried(uid)
	delete(w.in, uid)
}

// full reports whether pods are kept out of a window by those that are in it.
func (t *Tenants) full() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, w := range t.windows {
		if w.untried >= windowSize {
			return true
		}
	}
	return false
}

// Admit says why a pod must not be put into the queue, nil if it may. One that may not is put there when it may.
func (t *Tenants) Admit(pod *corev1.Pod) error {
	if allocations.Exempt(pod) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.admitLocked(pod)
	if err != nil {
		t.held[pod.UID] = pod
	} else {
		delete(t.held, pod.UID)
	}
	return err
}

func (t *Tenants) admitLocked(pod *corev1.Pod) error {
	if err := t.Err(); err != nil {
		return err
	}
	claim, known := t.claims.Of(pod)
	if !known {
		return fmt.Errorf("namespace %q is not known yet: wait until the scheduler has seen it", pod.Namespace)
	}
	if claim.Allocation == nil {
		return nil
	}
	if err := t.claims.Check(pod, claim.Allocation); err != nil {
		return err
	}
	partition, _, _ := t.claims.PartitionOf(claim.Allocation)
	w := t.windows[partition.Name]
	place, placed := t.order.Place(pod)
	if placed {
		if err := place.Why(); err != nil {
			return err
		}
	}
	if w != nil {
		if _, in := w.in[pod.UID]; in {
			return nil
		}
	}
	if placed {
		return fmt.Errorf("it waits until those before it have been tried: %s", place)
	}
	t.dirty()
	if !claim.Allocation.Bounds(pod) && w != nil && w.untried < windowSize && t.emptyLocked(w) {
		w.let(pod.UID)
		return nil
	}
	return fmt.Errorf("its position among the pods of partition %q is not known yet: it is computed every %s", partition.Name, debounce)
}

// shutOutLocked reports whether admitLocked refuses a pod because of its place in the order. It is false as well where only admitLocked can tell: for a pod
// that is in no order, and if Partitions, Allocations or namespaces are others than those of the order.
func (t *Tenants) shutOutLocked(pod *corev1.Pod) bool {
	if t.order.Claims != t.claims {
		return false
	}
	place, placed := t.order.Place(pod)
	if !placed {
		return false
	}
	w := t.windows[place.Partition.Name]
	if w == nil {
		return false
	}
	_, in := w.in[pod.UID]
	return !in
}

// emptyLocked reports whether nobody waits to be let into a window: a pod that has just come passes nobody by.
func (t *Tenants) emptyLocked(w *window) bool {
	return w.queue != nil && w.next == len(w.queue.Entries)
}

// FullError says that a pod must wait because its allocation or its identity group has as many as it may have.
type FullError struct{ error }

// Take notes that a pod of an allocation was taken from the queue, to be tried. Others are let in for it. The error says why it must wait all the
// same, as when its Partition is gone since it was let in: then it is put into the queue again when it may. It is a FullError if others have become the last
// that there may be.
func (t *Tenants) Take(pod *corev1.Pod, claims *allocations.Claims, a *allocations.Allocation) error {
	if err := claims.Check(pod, a); err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.held[pod.UID] = pod
		t.dirty()
		return err
	}
	if err := t.mayBeTried(pod); err != nil {
		return FullError{err}
	}
	partition, _, _ := claims.PartitionOf(a)
	let := t.taken(pod, partition.Name)
	if len(let) == 0 {
		return nil
	}
	woken := make(map[string]*corev1.Pod, len(let))
	for _, p := range let {
		woken[string(p.UID)] = p
	}
	t.activate(woken)
	return nil
}

// mayBeTried says why a pod must not be tried by now, nil if it may. It was let in by the order of then, and the queue asks no more about pods that wait
// to be tried again: another one may have taken the last that its allocation may have.
func (t *Tenants) mayBeTried(pod *corev1.Pod) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	place, placed := t.order.Place(pod)
	if !placed {
		return nil
	}
	err := place.Why()
	if w := t.windows[place.Partition.Name]; err != nil && w != nil {
		w.leave(pod.UID)
	}
	if err != nil {
		t.held[pod.UID] = pod
	}
	return err
}

func (t *Tenants) taken(pod *corev1.Pod, partition string) (let []*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.windows[partition]
	if w == nil {
		return nil
	}
	w.tried(pod.UID)
	if w.untried > windowSize/2 {
		return nil // half a window at a time: the queue is locked for each
	}
	return w.slide(t.isReserved)
}
