// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
)

func TestPreFilter(t *testing.T) {
	pl := newPlugin(t, byZone)
	web := st.MakeLabelSelector().Label("app", "web").Obj()
	for _, tc := range []struct {
		name   string
		pod    *st.PodWrapper
		code   fwk.Code
		levels string
	}{
		{"defaults", asking(""), fwk.Skip, "spread=zone"},
		{"defaults, of a DaemonSet", asking("").OwnerReference("ds", daemonSet), fwk.Skip, ""},
		{"annotation", asking("pack=rack"), fwk.Skip, "pack=rack"},
		{"constraint", asking("").SpreadConstraint(1, "host", corev1.ScheduleAnyway, web, nil, nil, nil, nil), fwk.Skip, "spread=host;nodesWithoutKey=LastResort"},
		{"a level that leaves nodes out", asking("spread=rack;nodesWithoutKey=Exclude"), fwk.Success, "spread=rack;nodesWithoutKey=Exclude"},
		{"the same, pinned to a node", asking("spread=rack;nodesWithoutKey=Exclude").NodeAffinityIn("metadata.name", []string{"n1"}, st.NodeSelectorTypeMatchFields), fwk.Success, "spread=rack;nodesWithoutKey=Exclude"},
		{"the same, of a DaemonSet", asking("spread=rack;nodesWithoutKey=Exclude").OwnerReference("ds", daemonSet), fwk.Skip, "spread=rack;nodesWithoutKey=Exclude"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := framework.NewCycleState()
			result, status := pl.PreFilter(t.Context(), state, tc.pod.Obj(), nil)
			if result != nil || status.Code() != tc.code {
				t.Errorf("got %v, %v, want %v", result, status, tc.code)
			}
			// They are there after a Skip as well: it is Filter that is skipped.
			if levels, found, err := clusterview.ReadLevels(state); !found || err != nil || level.Format(levels.List) != tc.levels {
				t.Errorf("the cycle has the levels %q (found: %t, %v), want %q", level.Format(levels.List), found, err, tc.levels)
			}
		})
	}
}

func TestPreFilterRefusesWhatItCannotRead(t *testing.T) {
	pl := newPlugin(t, byZone)
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want []string // the message holds them all
	}{
		{"annotation", asking("spread=zone,sprd=rack"), []string{clusterview.PlacementAnnotation, `level 2 "sprd=rack"`, `"sprd"`, "use spread=PROPERTY or pack=PROPERTY"}},
		{"annotation of a DaemonSet's pod", asking("spread=node.id").OwnerReference("ds", daemonSet), []string{`"node.id"`, "use node.name"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := framework.NewCycleState()
			result, status := pl.PreFilter(t.Context(), state, tc.pod.Obj(), nil)
			if result != nil || status.Code() != fwk.UnschedulableAndUnresolvable {
				t.Fatalf("got %v, %v", result, status)
			}
			for _, part := range tc.want {
				if !strings.Contains(status.Message(), part) {
					t.Errorf("the message does not say %q: %s", part, status.Message())
				}
			}
			if _, found, _ := clusterview.ReadLevels(state); found {
				t.Error("levels were left for the cycle")
			}
		})
	}
	plugintest.WantNoExtensions(t, pl)
}

func TestFilter(t *testing.T) {
	pl := newPlugin(t, byZone)
	for _, tc := range []struct {
		annotation string
		node       *st.NodeWrapper
		want       fwk.Code
	}{
		{"spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", "1"), fwk.Success},
		{"spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", ""), fwk.Success},
		{"spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("zone", "a"), fwk.UnschedulableAndUnresolvable},
		{"spread=zone,pack=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", "1"), fwk.Success},
		{"spread=zone;nodesWithoutKey=Exclude,spread=rack;nodesWithoutKey=Exclude", st.MakeNode().Name("n").Label("rack", "1"), fwk.UnschedulableAndUnresolvable},
		{"spread=node.name;nodesWithoutKey=Exclude", st.MakeNode().Name("n"), fwk.Success},
	} {
		t.Run(tc.annotation, func(t *testing.T) {
			status := plugintest.Filter(t, pl, asking(tc.annotation).Obj(), tc.node.Obj())
			if status.Code() != tc.want {
				t.Fatalf("got %v, want %v", status, tc.want)
			}
			if !status.IsSuccess() && status.Message() != preferences.ErrReasonMissing {
				t.Errorf("the reason is %q", status.Message())
			}
		})
	}
	if !strings.HasPrefix(preferences.ErrReasonMissing, "node(s) ") {
		t.Errorf("the reason %q does not read after a number of nodes", preferences.ErrReasonMissing)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), asking("").Obj())
}
