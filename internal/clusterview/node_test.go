// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

func TestValues(t *testing.T) {
	levels := plugintest.Levels(t, "spread=zone,pack=rack,spread=empty,spread=node.name")
	node := st.MakeNode().Name("n1").Label("zone", "a").Label("empty", "").Obj()
	want := []placement.Value{{Text: "a"}, {Missing: true}, {Text: ""}, {Text: "n1"}}
	if d := gocmp.Diff(want, clusterview.Values(node, levels)); d != "" {
		t.Error("want -, got +:\n" + d)
	}
}

func TestUnready(t *testing.T) {
	for _, tc := range []struct {
		name       string
		conditions []corev1.NodeCondition
		want       bool
	}{
		{"says nothing", nil, false},
		{"says nothing of it", []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}, false},
		{"ready", []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, false},
		{"not ready", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}, true},
		{"gone quiet", []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := st.MakeNode().Name("n1").Obj()
			node.Status.Conditions = tc.conditions
			if got := clusterview.Unready(node); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
	// A cordoned node runs its pods.
	if clusterview.Unready(st.MakeNode().Name("n1").Unschedulable(true).Obj()) {
		t.Error("a cordoned node is taken to be unready")
	}
}

func TestLeftOut(t *testing.T) {
	for _, tc := range []struct {
		levels        string
		leftOut, some bool
	}{
		{"", false, false},
		{"spread=rack", false, false},
		{"spread=rack;nodesWithoutKey=Exclude", true, true},
		{"spread=zone;nodesWithoutKey=Exclude", false, true},
		{"spread=zone;nodesWithoutKey=Exclude,pack=rack;nodesWithoutKey=Exclude", true, true},
		{"spread=empty;nodesWithoutKey=Exclude", false, true},
		{"spread=node.name;nodesWithoutKey=Exclude", false, true},
	} {
		t.Run(tc.levels, func(t *testing.T) {
			node := st.MakeNode().Name("n1").Label("zone", "a").Label("empty", "").Obj()
			levels := plugintest.Levels(t, tc.levels)
			if got := clusterview.LeftOut(node, levels); got != tc.leftOut {
				t.Errorf("LeftOut is %t", got)
			}
			if got := clusterview.AnyExcludes(levels); got != tc.some {
				t.Errorf("AnyExcludes is %t", got)
			}
		})
	}
}
