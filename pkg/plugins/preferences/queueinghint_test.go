// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
)

// hint is what the plugin says of a pod it refused when an event comes.
func hint(t *testing.T, pl *preferences.Preferences, event fwk.ClusterEvent, pod *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	t.Helper()
	events, err := pl.EventsToRegister(t.Context())
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
	web := st.MakeLabelSelector().Label("app", "web").Obj()
	constrained := func(app string) *st.PodWrapper {
		return asking("").Label("app", app).SpreadConstraint(1, "zone", corev1.ScheduleAnyway, web, nil, nil, nil, nil)
	}
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper
		want          fwk.QueueingHint
	}{
		{"annotation mended", asking("sprd=zone"), asking("spread=zone"), fwk.Queue},
		{"annotation taken away", asking("sprd=zone"), asking(""), fwk.Queue},
		{"annotation changed, still bad", asking("sprd=zone"), asking("sprd=rack"), fwk.QueueSkip},
		{"annotation no longer leaves nodes out", asking("spread=rack;missing=Exclude"), asking("spread=rack"), fwk.Queue},
		{"label changed", constrained("db"), constrained("web"), fwk.Queue},
		{"label changed, annotation bad", asking("sprd=zone"), asking("sprd=zone").Label("x", "y"), fwk.QueueSkip},
		{"something else changed", asking("spread=rack;missing=Exclude"), asking("spread=rack;missing=Exclude").Annotation("other", "x").Toleration("t"), fwk.QueueSkip},
		{"nothing changed", asking("sprd=zone"), asking("sprd=zone"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := hint(t, newPlugin(t), framework.EventTargetPodUpdate, tc.before.Obj(), tc.before.Obj(), tc.after.Obj())
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

// An empty annotation is refused, and reads like none where only values are compared.
func TestRegression_EmptyAnnotationTakenAway(t *testing.T) {
	before, after := asking(" ").Obj(), asking("").Obj()
	for key := range before.Annotations {
		before.Annotations[key] = ""
	}
	got, err := hint(t, newPlugin(t), framework.EventTargetPodUpdate, before, before, after)
	if err != nil || got != fwk.Queue {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	bare := func() *st.NodeWrapper { return st.MakeNode().Name("n") }
	racked := func() *st.NodeWrapper { return bare().Label("rack", "1") }
	for _, tc := range []struct {
		name          string
		annotation    string
		before, after *st.NodeWrapper
		want          fwk.QueueingHint
	}{
		{"a node with the property comes", "spread=rack;missing=Exclude", nil, racked(), fwk.Queue},
		{"a node without it comes", "spread=rack;missing=Exclude", nil, bare(), fwk.QueueSkip},
		{"a node is given it", "spread=rack;missing=Exclude", bare(), racked(), fwk.Queue},
		{"a node has had it", "spread=rack;missing=Exclude", racked(), racked().Label("x", "y"), fwk.QueueSkip},
		{"a node loses it", "spread=rack;missing=Exclude", racked(), bare(), fwk.QueueSkip},
		{"one of two properties", "spread=rack;missing=Exclude,spread=zone;missing=Exclude", bare(), racked(), fwk.QueueSkip},
		{"no node mends an annotation", "sprd=rack", nil, racked(), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			event := fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
			var before any
			if tc.before != nil {
				event.ActionType = fwk.UpdateNodeLabel
				before = tc.before.Obj()
			}
			got, err := hint(t, newPlugin(t), event, asking(tc.annotation).Obj(), before, tc.after.Obj())
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
