// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Evicted are the pods that made way for one that waits until they are gone.
type Evicted struct {
	// Nodes are where they are. The first is the one that the pod is nominated for. On the others they were in its way from there, by an
	// anti-affinity or the like.
	Nodes []string
	Pods  map[types.UID]bool
	Since time.Time
	// Displaced says that it is nominated for the first node no more, as one that comes before had no room beside it. It is tried again when all of these have gone.
	Displaced bool
	// inVain says that the pod has been tried since, and found no place, nor anybody else to make one.
	inVain bool
}

// MadeWay notes that victims, which run, were evicted for a pod, and that it has a place on a node then. The stamp is that of its queue.
func (t *Tenants) MadeWay(stamp uint64, preemptor *corev1.Pod, node string, victims []*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made.Keep(func(uid string) bool { return t.order.Has(types.UID(uid)) })
	its := Evicted{Nodes: []string{node}, Pods: make(map[types.UID]bool, len(victims)), Since: time.Now()}
	for _, v := range victims {
		t.made.Note(stamp, string(preemptor.UID), likeOf(v))
		if its.Pods[v.UID] = true; !slices.Contains(its.Nodes, v.Spec.NodeName) {
			its.Nodes = append(its.Nodes, v.Spec.NodeName)
		}
	}
	t.evicted[preemptor.UID] = its
	t.evicting.Store(true)
}

// NominationTaken notes that a pod has not got the place for which others made way, as one that comes before has it. It waits for them no more, and
// is tried again with the next order.
func (t *Tenants) NominationTaken(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waitsNoMoreLocked(pod.UID)
	t.retry[pod.UID] = pod
	t.dirty()
}

// Displace notes that a pod is nominated no more, as one that comes before has no room beside it now. It still waits for those that made way: there is
// room for both then.
func (t *Tenants) Displace(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if its, waits := t.evicted[pod.UID]; waits {
		its.Displaced = true
		t.evicted[pod.UID] = its
	}
	t.retry[pod.UID] = pod
	t.dirty()
}

// WaitsFor returns who made way for a pod. It is false if nobody did, if the pod has its node, or if it was tried in vain when all of
// these had gone.
func (t *Tenants) WaitsFor(pod *corev1.Pod) (Evicted, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	its, waits := t.evicted[pod.UID]
	return its, waits
}

// HasMadeWay reports whether the like of a pod made way for another one, under the same stamp.
func (t *Tenants) HasMadeWay(stamp uint64, pod, preemptor *corev1.Pod) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.made.For(stamp, string(preemptor.UID), likeOf(pod))
}

// Deleting has a pod be deleted, and notes that before: it may be gone before there is an answer. One that is not deleted is not noted.
func (t *Tenants) Deleting(pod types.UID, do func() error) error {
	t.noteDeleted(pod, true)
	err := do()
	t.noteDeleted(pod, err == nil)
	return err
}

func (t *Tenants) noteDeleted(pod types.UID, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if is {
		t.deleted[pod] = true
	} else {
		delete(t.deleted, pod)
	}
}

// WasDeleted reports whether a pod was deleted by this process. The pod itself need not show yet that it terminates.
func (t *Tenants) WasDeleted(pod types.UID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.deleted[pod]
}

// Evicting reports whether any pod waits for those that made way for it. It costs next to nothing.
func (t *Tenants) Evicting() bool { return t.evicting.Load() }

// forgetEvictedLocked forgets who made way for pods that are in no order any more, and for those that were tried in vain when all had gone. A node
// that is closed for a while may open before they have. Deleted pods are forgotten when they are gone.
func (t *Tenants) forgetEvictedLocked(all []*corev1.Pod) {
	if len(t.evicted) == 0 && len(t.deleted) == 0 {
		return
	}
	there := make(map[types.UID]bool, len(all))
	for _, pod := range all {
		there[pod.UID] = true
	}
	maps.DeleteFunc(t.deleted, func(uid types.UID, _ bool) bool { return !there[uid] })
	maps.DeleteFunc(t.evicted, func(uid types.UID, its Evicted) bool {
		if its.inVain && t.order.Has(uid) {
			for victim := range its.Pods {
				if there[victim] {
					return false
				}
			}
			return true
		}
		return !t.order.Has(uid)
	})
	t.evicting.Store(len(t.evicted) > 0)
}

// triedInVainLocked notes that pods found no place, and nobody else to make one.
func (t *Tenants) triedInVainLocked(pods []*corev1.Pod) {
	for _, pod := range pods {
		if its, waits := t.evicted[pod.UID]; waits {
			its.inVain = true
			t.evicted[pod.UID] = its
		}
	}
}

// waitsNoMoreLocked notes that a pod has a place, or is gone.
func (t *Tenants) waitsNoMoreLocked(pod types.UID) {
	if len(t.evicted) > 0 {
		delete(t.evicted, pod)
		t.evicting.Store(len(t.evicted) > 0)
	}
}

// likeOf names what a pod has in common with the one that is made in its place. The namespace is part of it: anybody may write an owner of
// another one into a pod.
func likeOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return pod.Namespace + "/" + string(owner.UID)
	}
	return pod.Namespace + "/" + pod.Name
}
