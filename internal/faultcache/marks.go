// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// Reasons of Events.
const (
	// ReasonFaulty is why a node is avoided for a revision.
	ReasonFaulty = "NodeFaulty"
	// ReasonFaultyCleared is that it is not any more.
	ReasonFaultyCleared = "NodeFaultyCleared"
	// ReasonSuspect is that a node is faulty for several workloads.
	ReasonSuspect = "NodeSuspect"
	// ReasonSuspectCleared is that it is not any more.
	ReasonSuspectCleared = "NodeSuspectCleared"
	// ReasonRecordUnreadable is that nothing is known of what an earlier scheduler knew.
	ReasonRecordUnreadable = "FailureRecordUnreadable"
)

// action is that of all Events.
const action = "Scheduling"

const (
	// lasting is how long a mark must last to be announced, from when it is first seen: until
	// an error has shown on a second node, one that is the workload's own looks like the
	// first node's.
	lasting = 2 * time.Second
	// fading is how long an announced mark must be gone for that to be announced. Whether
	// an error is the workload's own can change with every pod that comes or goes.
	fading = 10 * time.Second
)

// markKey is a node that is faulty for a revision.
type markKey struct {
	failure.Revision
	Node string
}

// mark is what was announced of one.
type mark struct {
	regarding corev1.ObjectReference
	// since is when it was first seen, and gone since when it is not any more, zero as
	// long as it is.
	since, gone time.Time
	announced   bool
}

// pendingEvent is an Event to come.
type pendingEvent struct {
	regarding, related runtime.Object // related may be nil
	kind, reason, note string
}

// lookAtMarks returns the Events that marks call for. The caller holds the lock.
func (c *Cache) lookAtMarks(now time.Time, soon func(time.Time)) (all []pendingEvent) {
	current := make(map[markKey]bool)
	lasted := 0
	for _, m := range c.ledger.Marks() {
		key := markKey{m.Revision, m.Node}
		current[key] = true
		known := c.marks[key]
		if known == nil {
			known = &mark{since: now}
			c.marks[key] = known
			token(c.urgent)
		}
		known.gone = time.Time{}
		if at := known.since.Add(lasting); at.After(now) {
			soon(at)
			continue
		}
		lasted++
		if t := c.tracked[m.Revision]; t != nil {
			known.regarding = t.regarding
		}
		if !known.announced && c.active.Load() {
			known.announced = true
			marksTotal.WithLabelValues(c.options.SchedulerName).Inc()
			all = append(all, c.markEvents(key, known, corev1.EventTypeWarning, ReasonFaulty, c.blame(&m))...)
		}
	}
	c.gauge(faultyNodes, lasted)
	for _, key := range c.vanished(current) {
		known := c.marks[key]
		if known.announced && (!c.active.Load() || !faded(now, &known.gone, soon)) {
			continue // a scheduler that stands by leaves it to the one that places pods
		}
		delete(c.marks, key)
		if known.announced {
			all = append(all, c.markEvents(key, known, corev1.EventTypeNormal, ReasonFaultyCleared,
				fmt.Sprintf("node %s is no longer faulty for %s: its failures are forgiven, have left the window of %v, or are the workload's own",
					key.Node, name(key.Revision), c.ledger.Rule(key.Revision).Window))...)
		}
	}
	return all
}

// faded reports whether something that was announced has been gone for long enough.
func faded(now time.Time, gone *time.Time, soon func(time.Time)) bool {
	if gone.IsZero() {
		*gone = now
	}
	at := gone.Add(fading)
	if at.After(now) {
		soon(at)
		return false
	}
	return true
}

// vanished are the marks that are not current any more, in order.
func (c *Cache) vanished(current map[markKey]bool) (keys []markKey) {
	for key := range c.marks {
		if !current[key] {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b markKey) int {
		return cmp.Or(a.Revision.Compare(b.Revision), strings.Compare(a.Node, b.Node))
	})
	return keys
}

// blame says what a node has done, and what will be done about it.
func (c *Cache) blame(m *failure.Mark) string {
	kinds := make([]string, len(m.Kinds))
	for i, k := range m.Kinds {
		kinds[i] = fmt.Sprintf("%d %s", k.Failures, k.Kind)
	}
	return fmt.Sprintf("node %s deprioritized for %s: %d failures within %v (%s); used only as a last resort",
		m.Node, name(m.Revision), m.Failures, c.ledger.Rule(m.Revision).Window, strings.Join(kinds, ", "))
}

// name is a revision as people read it.
func name(of failure.Revision) string {
	if of.Revision == "" {
		return of.Workload
	}
	return of.Workload + ", revision " + of.Revision
}

// markEvents are Events on the node and on the owner of the pods.
func (c *Cache) markEvents(key markKey, m *mark, kind, reason, note string) (all []pendingEvent) {
	c.logger.V(2).Info(note, "node", key.Node, "workload", key.Workload, "revision", key.Revision.Revision, "reason", reason)
	var related runtime.Object
	if m.regarding.Name != "" {
		related = new(m.regarding) // an Event keeps what it is given, and is written while the mark changes
	}
	if node := c.node(key.Node); node != nil {
		all = append(all, pendingEvent{regarding: node, related: related, kind: kind, reason: reason, note: note})
		if related != nil {
			all = append(all, pendingEvent{regarding: related, related: node, kind: kind, reason: reason, note: note})
		}
	}
	return all
}

// node refers to a node, nil if there is none: nobody could read what is said of it.
// Its Events are found by its UID as well as by its name, which kubelets give as UID.
func (c *Cache) node(name string) runtime.Object {
	node, err := c.nodes.Get(name)
	if err != nil {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: node.Name, UID: node.UID}
}

// emit records Events.
func (c *Cache) emit(all []pendingEvent) {
	if c.Recorder == nil {
		return
	}
	for _, n := range all {
		c.Recorder.Eventf(n.regarding, n.related, n.kind, n.reason, action, "%s", n.note)
	}
}
