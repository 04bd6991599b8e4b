// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// hint is what the plugin says of a pod it refused when an event comes.
func hint(t *testing.T, event fwk.ClusterEvent, pod *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	t.Helper()
	events, err := newPlugin(t).EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logger, _ := ktesting.NewTestContext(t)
	for _, e := range events {
		if e.Event.Resource == event.Resource && e.Event.ActionType&event.ActionType != 0 {
			return e.QueueingHintFn(logger, pod, before, after)
		}
	}
	t.Fatalf("no hint is registered for %v", event)
	return fwk.QueueSkip, nil
}

func TestHintAfterPodUpdate(t *testing.T) {
	empty := asking("").Annotation(clusterview.ConstraintsAnnotation, "")
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper
		want          fwk.QueueingHint
	}{
		{"mended", asking("role == worker"), asking("node.role == worker"), fwk.Queue},
		{"loosened", asking("node.role == worker, node.id == x"), asking("node.role == worker"), fwk.Queue},
		{"taken away", asking("role == worker"), asking(""), fwk.Queue},
		{"empty and taken away", empty, asking(""), fwk.Queue},
		{"changed, still bad", asking("role == worker"), asking("rule == worker"), fwk.QueueSkip},
		{"something else changed", asking("node.id == x"), asking("node.id == x").Label("a", "b").Annotation("c", "d"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := hint(t, framework.EventTargetPodUpdate, tc.before.Obj(), tc.before.Obj(), tc.after.Obj())
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	bare := func() *st.NodeWrapper { return st.MakeNode().Name("n") }
	ssd := func() *st.NodeWrapper { return bare().Label("disk", "ssd") }
	at := func(w *st.NodeWrapper, address string) *st.NodeWrapper {
		w.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		return w
	}
	for _, tc := range []struct {
		name          string
		annotation    string
		action        fwk.ActionType
		before, after *st.NodeWrapper
		want          fwk.QueueingHint
	}{
		{"a node comes on which they hold", "node.labels.disk == ssd", fwk.Add, nil, ssd(), fwk.Queue},
		{"a node comes on which they do not", "node.labels.disk == ssd", fwk.Add, nil, bare(), fwk.QueueSkip},
		{"a label comes", "node.labels.disk == ssd", fwk.UpdateNodeLabel, bare(), ssd(), fwk.Queue},
		{"a label goes", "node.labels.disk != ssd", fwk.UpdateNodeLabel, ssd(), bare(), fwk.Queue},
		{"a label goes that was wanted", "node.labels.disk == ssd", fwk.UpdateNodeLabel, ssd(), bare(), fwk.QueueSkip},
		{"another label comes", "node.labels.disk == ssd", fwk.UpdateNodeLabel, ssd(), ssd().Label("x", "y"), fwk.QueueSkip},
		{"one of two labels comes", "node.labels.disk == ssd, node.labels.x == y", fwk.UpdateNodeLabel, bare(), ssd(), fwk.QueueSkip},
		{"a taint goes", "node.labels.disk == ssd", fwk.UpdateNodeTaint, ssd(), ssd(), fwk.QueueSkip},
		{"an address comes", "node.ip == 10.0.0.1", fwk.UpdateNodeCondition, bare(), at(bare(), "10.0.0.1"), fwk.Queue},
		{"an address has come before", "node.ip == 10.0.0.1", fwk.UpdateNodeTaint, at(bare(), "10.0.0.1"), at(bare(), "10.0.0.1"), fwk.Queue},
		{"another address comes", "node.ip == 10.0.0.1", fwk.UpdateNodeCondition, bare(), at(bare(), "10.0.0.2"), fwk.QueueSkip},
		{"no node mends an annotation", "role == worker", fwk.Add, nil, ssd(), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var before any
			if tc.before != nil {
				before = tc.before.Obj()
			}
			got, err := hint(t, fwk.ClusterEvent{Resource: fwk.Node, ActionType: tc.action}, asking(tc.annotation).Obj(), before, tc.after.Obj())
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
