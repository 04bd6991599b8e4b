// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/policies"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
)

func TestFilterByWhatCounts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		there *st.PodWrapper
		full  bool
	}{
		{"of the same revision", web("x", "2", ""), true},
		{"the same, under other limits", web("x", "2", "rack=9"), true},
		{"starting", web("x", "2", "").Phase(corev1.PodPending), true},
		{"of another revision", web("x", "1", ""), false},
		{"of another workload", web("x", "2", "").Label(clusterview.WorkloadLabel, "db"), false},
		{"of another namespace", web("x", "2", "").Namespace("other"), false},
		{"terminating", web("x", "2", "").Terminating(), false},
		{"that has succeeded", web("x", "2", "").Phase(corev1.PodSucceeded), false},
		{"that has failed", web("x", "2", "").Phase(corev1.PodFailed), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t.Context(), t)
			r.join("n1", "n2")
			r.runs("n1", tc.there)
			want := []string{"n1", "n2"}
			if tc.full {
				want = want[1:]
			}
			r.expect("one per node", web("p", "2", "node.name=1"), want...)
		})
	}
}

func TestFilterCountsNodesInAnyState(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("ready rack=c", "zz rack=d")
	r.cache.AddNode(r.logger, node("cordoned rack=a").Unschedulable(true).Obj())
	r.cache.AddNode(r.logger, node("down rack=b").Condition(corev1.NodeReady, corev1.ConditionUnknown, "", "").Obj())
	r.join("a2 rack=a", "b2 rack=b")
	r.runs("cordoned", web("x", "2", ""))
	r.runs("down", web("y", "2", ""))
	r.expect("one per rack", web("p", "2", "rack=1"), "ready", "zz")
}

// The full message of a pod that fits nowhere: nodes are counted by reason, each once.
func TestMessage(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("a1 rack=a", "a2 rack=a", "b1 rack=b", "n")
	r.runs("a1", web("x", "2", ""))
	r.runs("b1", web("y", "2", ""))
	pod := web("p", "2", "rack=1").Obj()
	fits, diagnosis := r.filter(pod)
	err := &framework.FitError{Pod: pod, NumAllNodes: 4, Diagnosis: diagnosis}
	const want = "0/4 nodes are available: 1 node(s) didn't have a property that the pod's domain limits name, " +
		"3 node(s) were in a domain with as many of the workload's pods as its domain limits allow."
	if len(fits) != 0 || err.Error() != want {
		t.Errorf("%q fit; got  %s\nwant %s", fits, err, want)
	}
	for name, code := range map[string]fwk.Code{"a1": fwk.Unschedulable, "a2": fwk.Unschedulable, "n": fwk.UnschedulableAndUnresolvable} {
		if s := diagnosis.NodeToStatus.Get(name); s.Code() != code {
			t.Errorf("node %s gets %v, want code %v", name, s, code)
		}
	}
}

func TestDefaultLimits(t *testing.T) {
	r := newRig(t.Context(), t, config.DomainLimit{TopologyKey: "rack", MaxPods: 1})
	r.join("a1 rack=a", "b1 rack=b", "n")
	r.runs("a1", web("x", "2", ""))
	r.expect("without limits of its own", web("p", "2", ""), "b1")
	r.expect("with limits of its own", web("p", "2", "node.name=2"), "a1", "b1", "n")
	r.expect("pinned to a node", web("p", "2", "").NodeAffinityIn("metadata.name", []string{"a1"}, st.NodeSelectorTypeMatchFields), "b1")
	r.expect("of a DaemonSet", web("p", "2", "").OwnerReference("ds", daemonSet), "a1", "b1", "n")
	r.expect("of a DaemonSet, with limits of its own", web("p", "2", "rack=1").OwnerReference("ds", daemonSet), "b1")
}

func TestPreFilter(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n1")
	pod := web("p", "2", "").Obj()
	if result, s := r.pl.PreFilter(r.ctx, framework.NewCycleState(), pod, r.nodes()); result != nil || !s.IsSkip() {
		t.Errorf("a pod without limits: %v, %v", result, s)
	}
	if result, s := r.pl.PreFilter(r.ctx, framework.NewCycleState(), web("p", "2", "rack=1").Obj(), r.nodes()); result != nil || !s.IsSuccess() {
		t.Errorf("a pod with limits: %v, %v", result, s)
	}
	for text, part := range map[string]string{"rack=two": `limit 1 "rack=two": invalid number of pods "two"`, "": `no limits in ""`} {
		pod.Annotations = map[string]string{clusterview.DomainLimitsAnnotation: text}
		result, s := r.pl.PreFilter(r.ctx, framework.NewCycleState(), pod, r.nodes())
		if result != nil || s.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(s.Message(), part) ||
			!strings.Contains(s.Message(), clusterview.DomainLimitsAnnotation) {
			t.Errorf("%q: %v, %v", text, result, s)
		}
	}
}

// A profile that enables other points without PreFilter is told so, and no pod is placed.
func TestWithoutPreFilter(t *testing.T) {
	r := newRig(t.Context(), t)
	r.join("n1")
	n, pod, state := r.nodes()[0], web("p", "2", "rack=1").Obj(), framework.NewCycleState()
	info, err := framework.NewPodInfo(web("q", "2", "").Obj())
	r.must(err)
	for point, s := range map[string]*fwk.Status{
		"Filter":    r.pl.Filter(r.ctx, state, pod, n),
		"AddPod":    r.pl.AddPod(r.ctx, state, pod, info, n),
		"RemovePod": r.pl.RemovePod(r.ctx, state, pod, info, n),
	} {
		if s.Code() != fwk.Error || !strings.Contains(s.Message(), "PreFilter") {
			t.Errorf("%s: %v", point, s)
		}
	}
	state.Write("PreFilter"+domainlimits.Name, strangeData{})
	if s := r.pl.Filter(r.ctx, state, pod, n); s.Code() != fwk.Error || !strings.Contains(s.Message(), "strangeData") {
		t.Errorf("with something else in its place: %v", s)
	}
}

type strangeData struct{}

func (s strangeData) Clone() fwk.StateData { return s }

// An annotation comes before a policy, a policy before the profile. One that cannot be
// read refuses the pods that need it.
func TestLimitsOfAPolicy(t *testing.T) {
	r := newRig(t.Context(), t, config.DomainLimit{TopologyKey: "rack", MaxPods: 9})
	policy := func(name, app string, limits ...placementv1alpha1.DomainLimit) *clusterview.Policy {
		in := &placementv1alpha1.PlacementPolicy{}
		in.Namespace, in.Name = "ns", name
		in.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
		in.Spec.DomainLimits = limits
		return clusterview.ReadPolicy(in)
	}
	r.pl.Under(policies.Fixed(
		policy("one", "web", placementv1alpha1.DomainLimit{TopologyKey: "rack", MaxPods: 2}),
		policy("silent", "api"),
		policy("bad", "db", placementv1alpha1.DomainLimit{TopologyKey: "node.id", MaxPods: 2}),
	))
	for name, tc := range map[string]struct {
		pod  *st.PodWrapper
		want string
	}{
		"by the policy":           {st.MakePod().Namespace("ns").Label("app", "web"), "rack=2"},
		"by its annotation":       {st.MakePod().Namespace("ns").Label("app", "web").Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), "zone=1"},
		"the policy says nothing": {st.MakePod().Namespace("ns").Label("app", "api"), "rack=9"},
		"of another namespace":    {st.MakePod().Namespace("other").Label("app", "web"), "rack=9"},
		"an unreadable policy":    {st.MakePod().Namespace("ns").Label("app", "db"), ""},
		"but the pod has its own": {st.MakePod().Namespace("ns").Label("app", "db").Annotation(clusterview.DomainLimitsAnnotation, "zone=1"), "zone=1"},
	} {
		got, err := r.pl.Limits(tc.pod.Obj())
		if (err != nil) != (tc.want == "") || limit.Format(got) != tc.want {
			t.Errorf("%s: the limits are %q, %v; want %q", name, limit.Format(got), err, tc.want)
		}
	}
}
