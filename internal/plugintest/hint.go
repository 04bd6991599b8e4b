// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// Change is something that happens to an object, nil where there is none.
type Change struct {
	Event         fwk.ClusterEvent
	Before, After any
}

// PodUpdate is an update of the pod that waits.
func PodUpdate(before, after *corev1.Pod) Change {
	return Change{Event: framework.EventTargetPodUpdate, Before: before, After: after}
}

// NodeChange is a node that comes, if there is none before, that goes, if there is
// none after, or that is updated.
func NodeChange(update fwk.ActionType, before, after *corev1.Node) Change {
	switch {
	case before == nil:
		return Change{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, After: after}
	case after == nil:
		return Change{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Delete}, Before: before}
	default:
		return Change{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: update}, Before: before, After: after}
	}
}

// Hint is what the plugin says of a pod it refused when something changes. It must have
// registered the event.
func Hint(t testing.TB, pl fwk.EnqueueExtensions, pod *corev1.Pod, c Change) (fwk.QueueingHint, error) {
	t.Helper()
	events, err := pl.EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logger, _ := ktesting.NewTestContext(t)
	for _, e := range events {
		if framework.MatchClusterEvents(e.Event, c.Event) {
			return e.QueueingHintFn(logger, pod, c.Before, c.After)
		}
	}
	t.Fatalf("no hint is registered for %v", c.Event)
	return fwk.QueueSkip, nil
}

// WantHint fails the test if the plugin says anything else.
func WantHint(t testing.TB, pl fwk.EnqueueExtensions, pod *corev1.Pod, c Change, want fwk.QueueingHint) {
	t.Helper()
	if got, err := Hint(t, pl, pod, c); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// Hints asks a plugin about one change after the other. Each is a test of its own.
type Hints struct {
	t  *testing.T
	pl fwk.EnqueueExtensions
}

// NewHints asks the plugin.
func NewHints(t *testing.T, pl fwk.EnqueueExtensions) Hints { return Hints{t, pl} }

// AfterPodUpdate is about an update of the pod that waits.
func (h Hints) AfterPodUpdate(name string, before, after *st.PodWrapper, want fwk.QueueingHint) {
	h.t.Run(name, func(t *testing.T) {
		WantHint(t, h.pl, before.Obj(), PodUpdate(before.Obj(), after.Obj()), want)
	})
}

// AfterNodeChange is about a NodeChange while the pod waits.
func (h Hints) AfterNodeChange(name string, pod *st.PodWrapper, update fwk.ActionType, before, after *corev1.Node, want fwk.QueueingHint) {
	h.t.Run(name, func(t *testing.T) {
		WantHint(t, h.pl, pod.Obj(), NodeChange(update, before, after), want)
	})
}
