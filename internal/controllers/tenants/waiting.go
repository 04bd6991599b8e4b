// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/notices"
	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// Reasons of the Events on pods that wait before the scheduling queue. Of those that were tried kube-scheduler says why they wait.
const (
	reasonTurn       = "WaitsForTurn"
	reasonMaximum    = "AllocationAtMaximum"
	reasonIdentity   = "WaitsForIdentity"
	reasonGroup      = "WaitsForGroup"
	reasonNotInOrder = "NotInOrder"
)

const (
	// shortly is for how long a pod waits for one reason before an Event says so: most wait for an instant.
	shortly = 10 * time.Second
	// maxTold bounds the Events of a look: ten thousand pods that wait are not as many writes at once.
	maxTold = 20
	// repeated is after which time an Event is written anew for the same reason: the API server has forgotten it by then.
	repeated = time.Hour
)

// why is what a pod waits for. It is the same wherever the pod is in the order.
type why struct {
	// reason is that of the Event, "" for a pod that was tried.
	reason string
	// cause says why a pod is in no order, or which one keeps its group from being tried.
	cause string
}

// waiting is a pod that has no node.
type waiting struct {
	why
	pod        *corev1.Pod
	allocation string
	at         allocations.Place // for one in the order
	index      int               // in the order
	nth        int               // among those of its allocation
}

// history is what was said of a pod that waits.
type history struct {
	now  why
	from time.Time // since when it has waited for that
	told why       // the last
	when map[string]time.Time
}

// note notes what the pod waits for now.
func (h *history) note(now why, at time.Time) {
	if h.now != now {
		h.now, h.from = now, at
	}
}

// due reports whether an Event is to say that.
func (h *history) due(at time.Time) bool {
	gap := notices.Apart
	if h.told == h.now {
		gap = repeated
	}
	last, said := h.when[h.now.reason]
	return h.now.reason != "" && at.Sub(h.from) >= shortly && (!said || at.Sub(last) >= gap)
}

// tell notes that it says so.
func (h *history) tell(at time.Time) {
	if h.when == nil {
		h.when = make(map[string]time.Time)
	}
	h.told, h.when[h.now.reason] = h.now, at
}

// tell writes Events on the pods that wait and were not told why. The first of each allocation come first, so that one with thousands of pods
// keeps those of others no longer than its own.
func (c *Controller) tell(order *allocations.Order, pods []*corev1.Pod) {
	now := c.Clock.Now()
	histories := make(map[types.UID]*history)
	of := make(map[string]int)
	var due []waiting
	for _, w := range waitingOf(order, pods) {
		h := c.histories[w.pod.UID]
		if h == nil {
			h = new(history)
		}
		h.note(w.why, now)
		histories[w.pod.UID] = h
		if w.reason == "" {
			continue
		}
		w.nth = of[w.allocation]
		of[w.allocation]++
		if h.due(now) {
			due = append(due, w)
		}
	}
	c.histories = histories // those of pods that do not wait any more are forgotten
	slices.SortStableFunc(due, func(a, b waiting) int { return cmp.Or(cmp.Compare(a.nth, b.nth), cmp.Compare(a.index, b.index)) })
	for _, w := range due[:min(len(due), maxTold)] {
		histories[w.pod.UID].tell(now)
		kind, note := w.event()
		c.Events.Eventf(w.pod, nil, kind, w.reason, "Waiting", "%s", syntax.CutTo(note, maxReason))
	}
}

// waitingOf are the pods without nodes: those of each partition in its order, and then those that are in none by their age.
func waitingOf(order *allocations.Order, pods []*corev1.Pod) (all []waiting) {
	groups := make(holders)
	for _, q := range order.Queues {
		for i := range q.Entries {
			if e := &q.Entries[i]; !e.Pod.Placed {
				w := waiting{why: why{reason: reasonOf(e)}, pod: e.Object, allocation: e.Allocation.Name, at: allocations.Place{Queue: q, Index: i}, index: i}
				if w.reason == reasonMaximum || w.reason == reasonIdentity {
					groups.note(w.pod)
				}
				all = append(all, w)
			}
		}
	}
	sorted := len(all)
	for _, pod := range pods {
		err := order.Held[pod.UID]
		if err == nil || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		groups.note(pod)
		if len(pod.Spec.SchedulingGates) > 0 {
			continue // the API server says that it has them
		}
		claim, _ := order.Of(pod)
		all = append(all, waiting{why: why{reasonNotInOrder, err.Error()}, pod: pod, allocation: claim.Allocation.Name, index: math.MaxInt})
	}
	slices.SortFunc(all[sorted:], func(a, b waiting) int {
		return cmp.Or(a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time), cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	for i := range all[:sorted] {
		if w := &all[i]; w.reason == reasonTurn && groups[groupOf(w.pod)] != "" {
			w.why = why{reasonGroup, groups[groupOf(w.pod)]}
		}
	}
	return all
}

// holders names for PodGroups one of their pods that must not be tried. The queue keeps all others of the group with it.
type holders map[groupKey]string

// groupKey is a PodGroup, whose name is "" for the pods of none.
type groupKey struct{ namespace, name string }

func groupOf(pod *corev1.Pod) groupKey {
	return groupKey{pod.Namespace, clusterview.SchedulingGroup(pod)}
}

// note notes that a pod must not be tried. Of several it is the first by name, so that the same one is named however the order changes.
func (h holders) note(pod *corev1.Pod) {
	if g := groupOf(pod); g.name != "" && (h[g] == "" || pod.Name < h[g]) {
		h[g] = pod.Name
	}
}

// reasonOf is for what a pod in the order waits, "" for its place alone.
func reasonOf(e *allocations.Entry) string {
	switch _, tried := e.Refusal(); {
	case e.Class == allocation.Capped:
		return reasonMaximum
	case e.Class == allocation.StandsBy:
		return reasonIdentity
	case tried:
		return ""
	}
	return reasonTurn
}

// event is the type of the Event on a pod that waits, and what it says.
func (w *waiting) event() (kind, note string) {
	switch w.reason {
	case reasonMaximum:
		if w.at.Entry().Pod.Priority == 0 {
			return corev1.EventTypeNormal, w.at.Waits() // which says what to do
		}
		note = "raise maxUtilizationPercent or what is reserved, or remove pods before this one"
	case reasonIdentity:
		note = "it is next when one is free; a larger count of the group lets more run"
	case reasonGroup:
		note = fmt.Sprintf("a PodGroup is tried when all of its pods may be: see what its pod %s/%s waits for", w.pod.Namespace, w.cause)
	case reasonTurn:
		note = fmt.Sprintf("those that wait before it are tried first, see kubectl espalier queue %s; if there are none, see whether its scheduler runs", w.at.Partition.Name)
	default:
		return corev1.EventTypeWarning, fmt.Sprintf("it waits as a pod of allocation %q: %s", w.allocation, w.cause)
	}
	return corev1.EventTypeNormal, w.at.Waits() + ": " + note
}
