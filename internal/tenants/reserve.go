// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/identity"
)

// reservation is what a pod has that is being bound.
type reservation struct {
	// group is the identity group of the pod, and id its number, -1 for none.
	group allocations.GroupKey
	id    int
}

// Reserve notes that a pod of an allocation has a node. If it is of an identity group, it is given the lowest number that is free; it is
// false if there is none, or the order does not have the group yet. The number is -1 for a pod of no group.
func (t *Tenants) Reserve(pod *corev1.Pod, claims *allocations.Claims, a *allocations.Allocation) (id int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waitsNoMoreLocked(pod.UID)
	r := reservation{id: -1}
	if name, size, err := a.Group(pod); err == nil && name != "" {
		r.group = allocations.GroupKey{Allocation: a.Name, Name: name}
		held, known := t.heldLocked(r.group)
		if r.id, ok = identity.Lowest(size, held); !known || !ok {
			return -1, false
		}
	}
	t.reserved[pod.UID] = r
	if partition, _, err := claims.PartitionOf(a); err == nil && t.windows[partition.Name] != nil {
		t.windows[partition.Name].leave(pod.UID)
	}
	delete(t.tried, pod.UID)
	return r.id, true
}

// heldLocked are the numbers of a group that are held, by pods that have their nodes and by those that are being bound. They are not known of
// a group that has come since the order was computed: its pods may run already, as after an allocation was deleted and made anew.
func (t *Tenants) heldLocked(of allocations.GroupKey) (held identity.Set, known bool) {
	held = make(identity.Set)
	for _, q := range t.order.Queues {
		if g, ok := q.Groups[of]; ok {
			maps.Copy(held, g.Held)
			known = true
		}
	}
	for _, r := range t.reserved {
		if r.group == of {
			held[r.id] = true
		}
	}
	return held, known
}

// Unreserve takes back what Reserve has noted.
func (t *Tenants) Unreserve(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, was := t.reserved[pod.UID]; was {
		delete(t.reserved, pod.UID)
		t.version++
		t.dirty()
	}
}

func (t *Tenants) isReserved(uid types.UID) bool {
	_, is := t.reserved[uid]
	return is
}

// bindingsSeenLocked forgets the reservations of pods that are seen to have their nodes, or not to be there any more.
func (t *Tenants) bindingsSeenLocked(all []*corev1.Pod) {
	if len(t.reserved) == 0 {
		return
	}
	waiting := make(map[types.UID]bool)
	for _, pod := range all {
		if pod.Spec.NodeName == "" {
			waiting[pod.UID] = true
		}
	}
	maps.DeleteFunc(t.reserved, func(uid types.UID, _ reservation) bool { return !waiting[uid] })
}
