// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

func TestValues(t *testing.T) {
	levels := plugintest.Levels(t, "spread=zone,pack=rack,spread=empty,spread=node.name")
	node := st.MakeNode().Name("n1").Label("zone", "a").Label("empty", "").Obj()
	want := []placement.Value{{Text: "a"}, {Missing: true}, {Text: ""}, {Text: "n1"}}
	plugintest.WantEqual(t, want, clusterview.Values(node, levels))
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
		node := st.MakeNode().Name("n1").Obj()
		node.Status.Conditions = tc.conditions
		if got := clusterview.Unready(node); got != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
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

func TestKeepsOff(t *testing.T) {
	cordon := corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}
	tainted := func(effect corev1.TaintEffect) corev1.NodeSpec {
		return corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: effect}}}
	}
	for name, tc := range map[string]struct {
		node corev1.NodeSpec
		pod  []corev1.Toleration
		want bool
	}{
		"a node without taints":                {corev1.NodeSpec{}, nil, false},
		"a cordon":                             {corev1.NodeSpec{Unschedulable: true}, nil, true},
		"a cordon that is tolerated":           {corev1.NodeSpec{Unschedulable: true}, []corev1.Toleration{cordon}, false},
		"a pod that tolerates all":             {corev1.NodeSpec{Unschedulable: true}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, false},
		"a taint that evicts":                  {tainted(corev1.TaintEffectNoExecute), nil, true},
		"a taint that keeps pods off":          {tainted(corev1.TaintEffectNoSchedule), []corev1.Toleration{cordon}, true},
		"a taint that is tolerated":            {tainted(corev1.TaintEffectNoSchedule), []corev1.Toleration{{Key: "k", Value: "v"}}, false},
		"a taint by which the node comes last": {tainted(corev1.TaintEffectPreferNoSchedule), nil, false},
	} {
		if got := clusterview.KeepsOff(&corev1.Node{Spec: tc.node}, &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tc.pod}}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestSoft(t *testing.T) {
	prefer := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectPreferNoSchedule}
	}
	hard := corev1.Taint{Key: "hard", Effect: corev1.TaintEffectNoSchedule}
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	for name, tc := range map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		soft        string
		tolerated   bool
	}{
		"none":                  {nil, nil, "", true},
		"hard ones alone":       {[]corev1.Taint{hard}, nil, "", true},
		"a soft one":            {[]corev1.Taint{hard, prefer("a", "")}, nil, "a=", false},
		"two, in order":         {[]corev1.Taint{prefer("b", "2"), prefer("a", "1")}, []corev1.Toleration{exists("a", "")}, "a=1,b=2", false},
		"tolerated":             {[]corev1.Taint{prefer("a", "1")}, []corev1.Toleration{{Key: "a", Value: "1", Effect: corev1.TaintEffectPreferNoSchedule}}, "a=1", true},
		"of another effect":     {[]corev1.Taint{prefer("a", "1")}, []corev1.Toleration{exists("a", corev1.TaintEffectNoSchedule)}, "a=1", false},
		"of another value":      {[]corev1.Taint{prefer("a", "1")}, []corev1.Toleration{{Key: "a", Value: "2"}}, "a=1", false},
		"all that there may be": {[]corev1.Taint{prefer("a", "1"), prefer("b", "")}, []corev1.Toleration{exists("", "")}, "a=1,b=", true},
	} {
		soft := clusterview.Soft(&corev1.Node{Spec: corev1.NodeSpec{Taints: tc.taints}})
		if tolerated := soft == "" || clusterview.ToleratesSoft(tc.tolerations, soft); soft != tc.soft || tolerated != tc.tolerated {
			t.Errorf("%s: it is %q, tolerated %t; want %q, %t", name, soft, tolerated, tc.soft, tc.tolerated)
		}
	}
}

func TestSpared(t *testing.T) {
	const karpenter, autoscaler = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		key, value string
		runs       time.Duration // 0 for one that has not started
		spared     bool
	}{
		"nothing is said":                  {"", "", time.Hour, false},
		"Karpenter must not":               {karpenter, "true", time.Hour, true},
		"Karpenter may":                    {karpenter, "false", time.Hour, false},
		"not for four hours":               {karpenter, "4h", 4*time.Hour - time.Second, true},
		"not for four hours, which are up": {karpenter, "4h", 4 * time.Hour, false},
		"not for a time, and not started":  {karpenter, "4h", 0, true},
		"not for no time":                  {karpenter, "0s", 0, false},
		"not for a negative time":          {karpenter, "-1h", time.Second, false},
		"unreadable":                       {karpenter, "yes", time.Hour, false},
		"Cluster Autoscaler must not":      {autoscaler, "false", time.Hour, true},
		"Cluster Autoscaler may":           {autoscaler, "true", time.Hour, false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tc.key: tc.value}}}
		if tc.runs > 0 {
			p.Status.StartTime = &metav1.Time{Time: now.Add(-tc.runs)}
		}
		want := ""
		if tc.spared {
			want = tc.key + ": " + tc.value
		}
		if by := clusterview.Spared(p, now); by != want {
			t.Errorf("%s: it is spared by %q, want %q", name, by, want)
		}
	}
}
