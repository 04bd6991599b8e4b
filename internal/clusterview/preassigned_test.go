// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// is is a requirement of a node's name.
func is(name string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
}

func term(fields ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: fields}
}

func withAffinity(terms ...corev1.NodeSelectorTerm) *corev1.Pod {
	p := st.MakePod().Namespace("ns").Name("p").Obj()
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	return p
}

func TestPreassigned(t *testing.T) {
	but := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n1"}}
	ssd := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}
	both := ssd
	both.MatchFields = []corev1.NodeSelectorRequirement{is("n1")}
	preferred := st.MakePod().Namespace("ns").Name("p").Obj()
	preferred.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term(is("n1"))}},
	}}
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"a pod alone", plugintest.Pod(st.MakePod().Name("p")), false},
		{"a DaemonSet's", plugintest.Pod(st.MakePod().Name("p"), "apps/v1 DaemonSet ds u"), true},
		{"a static pod", plugintest.Pod(st.MakePod().Name("p"), "v1 Node n1 u"), true},
		{"a DaemonSet of another group", plugintest.Pod(st.MakePod().Name("p"), "example.com/v1 DaemonSet ds u"), false},
		{"pinned to a node", withAffinity(term(is("n1"))), true},
		{"pinned to a node twice", withAffinity(term(is("n1")), term(is("n1"))), true},
		{"pinned to a node, if it has a disk", withAffinity(both), true},
		{"pinned to a node twice in a term", withAffinity(term(is("n1"), is("n1"))), true},
		{"beside a term that no node meets", withAffinity(term(is("n1"), is("n2")), term(is("n3"))), true},
		{"two nodes", withAffinity(term(is("n1")), term(is("n2"))), false},
		{"a node, or any with a disk", withAffinity(term(is("n1")), ssd), false},
		{"no node at all", withAffinity(term(is("n1"), is("n2"))), false},
		{"any node but one", withAffinity(term(but)), false},
		{"no terms", withAffinity(), false},
		{"a node that is preferred", preferred, false},
		{"a selector of a host's label", st.MakePod().NodeSelector(map[string]string{corev1.LabelHostname: "n1"}).Obj(), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := clusterview.Preassigned(tc.pod); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// A pinned pod is one of its workload, and of its revision: it counts like the others.
func TestIdentifyAPinnedPod(t *testing.T) {
	p := withAffinity(term(is("n1")))
	p.Labels = map[string]string{clusterview.WorkloadLabel: "shop"}
	want := clusterview.Identity{Workload: clusterview.Workload{Namespace: "ns", Kind: clusterview.KindLabel, Name: "shop"}, Preassigned: true}
	if got := plugintest.NewReplicaSets().Identifier().Identify(p); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Whatever the affinity, a pod that is preassigned by it fits one node, by the
// affinity's own rules, and has the name of this node in it.
func TestPreassignedPodsFitOneNode(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	rapid.Check(t, func(t *rapid.T) {
		requirement := rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement {
			return is(rapid.SampledFrom(nodes).Draw(t, "name"))
		})
		terms := rapid.SliceOfN(rapid.SliceOfN(requirement, 0, 2), 0, 3).Draw(t, "terms")
		var selector []corev1.NodeSelectorTerm
		open := false
		for _, fields := range terms {
			selector = append(selector, term(fields...))
			open = open || len(fields) == 0
		}
		p := withAffinity(selector...)
		required := nodeaffinity.GetRequiredNodeAffinity(p)
		fit := 0
		for _, name := range nodes {
			if ok, err := required.Match(st.MakeNode().Name(name).Obj()); err == nil && ok {
				fit++
			}
		}
		// A term without requirements matches nothing, and the in-tree plugin does not
		// let the framework leave out nodes for the sake of the others.
		if got, want := clusterview.Preassigned(p), fit == 1 && !open; got != want {
			t.Errorf("fits %d nodes, and Preassigned is %t: %+v", fit, got, terms)
		}
	})
}
