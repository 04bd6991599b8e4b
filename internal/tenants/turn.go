// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"cmp"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/queueorder"
)

// turn is when an entity of the queue is taken. Pods of a partition are taken in its order. For those of none, it is by priority and then by
// age. To be one order for both, the pods of a partition have the highest priority of those that wait in it, and each is as old
// as the youngest up to its position: so pods of none wait for them no longer than for each other.
type turn struct {
	priority  int32
	since     time.Time
	partition string
	position  int
}

// compare orders turns.
func (t turn) compare(o turn) int {
	return cmp.Or(cmp.Compare(o.priority, t.priority), t.since.Compare(o.since), cmp.Compare(t.partition, o.partition), cmp.Compare(t.position, o.position))
}

// turnsOf are those of the pods that wait, by the order of all partitions.
func turnsOf(order *allocations.Order) map[types.UID]turn {
	turns := make(map[types.UID]turn)
	for _, q := range order.Queues {
		priority := int32(math.MinInt32)
		for i := range q.Entries {
			if e := &q.Entries[i]; !e.Pod.Placed {
				priority = max(priority, corev1helpers.PodPriority(e.Object))
			}
		}
		var since time.Time
		for i := range q.Entries {
			e := &q.Entries[i]
			if e.Pod.Placed {
				continue
			}
			if made := e.Object.CreationTimestamp.Time; made.After(since) {
				since = made
			}
			turns[e.Object.UID] = turn{priority, since, q.Partition.Name, i + 1}
		}
	}
	return turns
}

// Before reports whether an entity is taken from the queue before another one.
func (t *Tenants) Before(a, b fwk.QueuedEntityInfo) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.turnLocked(a).compare(t.turnLocked(b)) < 0
}

// turnLocked is the turn of an entity. A group of pods is taken when it is the turn of the last of them, as it is placed as a whole.
func (t *Tenants) turnLocked(entity fwk.QueuedEntityInfo) turn {
	var of turn
	found := false
	for _, pod := range podsOf(entity) {
		if its, is := t.turns[pod.UID]; is && (!found || its.compare(of) > 0) {
			of, found = its, true
		}
	}
	if found {
		return of
	}
	return turn{priority: entity.GetPriority(), since: queueorder.Since(entity)}
}

// podsOf are the pods of an entity: itself, or those of a group.
func podsOf(entity fwk.QueuedEntityInfo) []*corev1.Pod {
	switch is := entity.(type) {
	case interface{ GetPodInfo() fwk.PodInfo }:
		return []*corev1.Pod{is.GetPodInfo().GetPod()}
	case interface{ GetUnscheduledPods() []*corev1.Pod }:
		return is.GetUnscheduledPods()
	}
	return nil
}
