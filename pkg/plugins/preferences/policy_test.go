// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
)

// under is a plugin in a cluster with one policy, for the pods with app=web.
func under(t *testing.T, levels ...placementv1alpha1.Level) *preferences.Preferences {
	t.Helper()
	pl := newPlugin(t, byZone)
	pl.Under(policies.Fixed(clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "racks"},
		Spec: placementv1alpha1.PlacementPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Levels: levels,
		},
	})))
	return pl
}

func TestPreFilterUnderAPolicy(t *testing.T) {
	web := st.MakeLabelSelector().Label("app", "web").Obj()
	excluding := placementv1alpha1.Level{TopologyKey: "rack", Strategy: "Pack", NodesWithoutKey: "Exclude"}
	for _, tc := range []struct {
		name   string
		pod    *st.PodWrapper
		code   fwk.Code
		levels string
	}{
		{"a pod it selects", asking(""), fwk.Success, "pack=rack;nodesWithoutKey=Exclude"},
		{"another pod", asking("").Label("app", "db"), fwk.Skip, "spread=zone"},
		{"annotation first", asking("spread=host"), fwk.Skip, "spread=host"},
		{"constraints first", asking("").SpreadConstraint(1, "host", corev1.ScheduleAnyway, web, nil, nil, nil, nil), fwk.Skip, "spread=host;nodesWithoutKey=LastResort"},
		{"a DaemonSet's pod", asking("").OwnerReference("ds", daemonSet), fwk.Skip, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := framework.NewCycleState()
			_, status := under(t, excluding).PreFilter(t.Context(), state, tc.pod.Obj(), nil)
			levels, _, err := clusterview.ReadLevels(state)
			if status.Code() != tc.code || err != nil || level.Format(levels.List) != tc.levels {
				t.Errorf("got %v and the levels %q, %v; want %v and %q", status, level.Format(levels.List), err, tc.code, tc.levels)
			}
		})
	}
}

func TestPreFilterRefusesUnderAPolicyThatCannotBeRead(t *testing.T) {
	_, status := under(t, placementv1alpha1.Level{TopologyKey: "node.id"}).PreFilter(t.Context(), framework.NewCycleState(), asking("").Obj(), nil)
	for _, part := range []string{`PlacementPolicy "racks"`, "spec.levels[0].topologyKey", `"node.id"`, "use the key of a node label"} {
		if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), part) {
			t.Errorf("got %v, want %q", status, part)
		}
	}
}

// A DaemonSet's pod is not placed by policies: one that cannot be read does not block it, only its own annotation does.
func TestRegression_UnreadablePolicyOfADaemonSetsPod(t *testing.T) {
	pl := under(t, placementv1alpha1.Level{TopologyKey: "node.id"})
	pod, bad := asking("").OwnerReference("ds", daemonSet).Obj(), asking("spread=node.id").OwnerReference("ds", daemonSet).Obj()
	if _, status := pl.PreFilter(t.Context(), framework.NewCycleState(), pod, nil); !status.IsSkip() {
		t.Errorf("PreFilter says %v", status)
	}
	if _, status := pl.SignPod(t.Context(), pod); !status.IsSuccess() {
		t.Errorf("SignPod says %v", status)
	}
	if got, err := plugintest.Hint(t, pl, pod, plugintest.PodUpdate(bad, pod)); err != nil || got != fwk.Queue {
		t.Errorf("its annotation is taken away: %v, %v", got, err)
	}
	if _, status := pl.PreFilter(t.Context(), framework.NewCycleState(), bad, nil); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("its own annotation cannot be read: %v", status)
	}
}

func TestSignPodUnderAPolicy(t *testing.T) {
	byRack := placementv1alpha1.Level{TopologyKey: "rack"}
	pl := under(t, byRack)
	if web, db := fragment(t, pl, asking("").Obj()), fragment(t, pl, asking("").Label("app", "db").Obj()); web == db {
		t.Errorf("a pod under a policy and one that is not are both signed %v", web)
	}
	if fragments, status := under(t, placementv1alpha1.Level{TopologyKey: "node.id"}).SignPod(t.Context(), asking("").Obj()); status.Code() != fwk.Unschedulable || fragments != nil {
		t.Errorf("a pod whose policy cannot be read is signed %v, %v", fragments, status)
	}
}

// A pod is given the label that a policy selects, or loses it.
func TestHintAfterALabelThatAPolicySelects(t *testing.T) {
	pl := under(t, placementv1alpha1.Level{TopologyKey: "node.id"})
	selected, free := asking("").Obj(), asking("").Label("app", "db").Obj()
	if got, err := plugintest.Hint(t, pl, free, plugintest.PodUpdate(selected, free)); err != nil || got != fwk.Queue {
		t.Errorf("it leaves a policy that cannot be read: %v, %v", got, err)
	}
	if got, err := plugintest.Hint(t, pl, selected, plugintest.PodUpdate(free, selected)); err != nil || got != fwk.QueueSkip {
		t.Errorf("it comes under a policy that cannot be read: %v, %v", got, err)
	}
	pl = under(t, placementv1alpha1.Level{TopologyKey: "rack", NodesWithoutKey: "Exclude"})
	comes := func(n *st.NodeWrapper) plugintest.Change { return plugintest.NodeChange(fwk.Add, nil, n.Obj()) }
	if got, err := plugintest.Hint(t, pl, selected, comes(st.MakeNode().Name("n").Label("rack", "1"))); err != nil || got != fwk.Queue {
		t.Errorf("a node with the policy's property comes: %v, %v", got, err)
	}
	if got, err := plugintest.Hint(t, pl, selected, comes(st.MakeNode().Name("n"))); err != nil || got != fwk.QueueSkip {
		t.Errorf("a node without it comes: %v, %v", got, err)
	}
}
