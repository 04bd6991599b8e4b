// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

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
		{"annotation no longer leaves nodes out", asking("spread=rack;nodesWithoutKey=Exclude"), asking("spread=rack"), fwk.Queue},
		{"label changed", constrained("db"), constrained("web"), fwk.Queue},
		{"label changed, annotation bad", asking("sprd=zone"), asking("sprd=zone").Label("x", "y"), fwk.QueueSkip},
		{"something else changed", asking("spread=rack;nodesWithoutKey=Exclude"), asking("spread=rack;nodesWithoutKey=Exclude").Annotation("other", "x").Toleration("t"), fwk.QueueSkip},
		{"nothing changed", asking("sprd=zone"), asking("sprd=zone"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plugintest.WantHint(t, newPlugin(t), tc.before.Obj(), plugintest.PodUpdate(tc.before.Obj(), tc.after.Obj()), tc.want)
		})
	}
}

// An empty annotation is refused, and reads like none where only values are compared.
func TestRegression_EmptyAnnotationTakenAway(t *testing.T) {
	before, after := asking(" ").Obj(), asking("").Obj()
	for key := range before.Annotations {
		before.Annotations[key] = ""
	}
	plugintest.WantHint(t, newPlugin(t), before, plugintest.PodUpdate(before, after), fwk.Queue)
}

func TestHintAfterNodeChange(t *testing.T) {
	bare, racked := st.MakeNode().Name("n").Obj(), st.MakeNode().Name("n").Label("rack", "1").Obj()
	more := st.MakeNode().Name("n").Label("rack", "1").Label("x", "y").Obj()
	for _, tc := range []struct {
		name          string
		annotation    string
		before, after *corev1.Node
		want          fwk.QueueingHint
	}{
		{"a node with the property comes", "spread=rack;nodesWithoutKey=Exclude", nil, racked, fwk.Queue},
		{"a node without it comes", "spread=rack;nodesWithoutKey=Exclude", nil, bare, fwk.QueueSkip},
		{"a node is given it", "spread=rack;nodesWithoutKey=Exclude", bare, racked, fwk.Queue},
		{"a node has had it", "spread=rack;nodesWithoutKey=Exclude", racked, more, fwk.QueueSkip},
		{"a node loses it", "spread=rack;nodesWithoutKey=Exclude", racked, bare, fwk.QueueSkip},
		{"one of two properties", "spread=rack;nodesWithoutKey=Exclude,spread=zone;nodesWithoutKey=Exclude", bare, racked, fwk.QueueSkip},
		{"no node mends an annotation", "sprd=rack", nil, racked, fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plugintest.WantHint(t, newPlugin(t), asking(tc.annotation).Obj(), plugintest.NodeChange(fwk.UpdateNodeLabel, tc.before, tc.after), tc.want)
		})
	}
}
