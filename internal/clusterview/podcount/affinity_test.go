// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
)

// Whom running pods prefer near them, or far from them, is known until they are gone.
func TestPreferred(t *testing.T) {
	quiet := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "quiet"}}
	running := func(name string) *st.PodWrapper { return st.MakePod().Namespace("ns").Name(name).UID(name).Node("n") }
	everywhere := func(p *st.PodWrapper, namespaces *metav1.LabelSelector) *corev1.Pod {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: quiet, TopologyKey: "zone", NamespaceSelector: namespaces}},
		}}}
		return p.Obj()
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool // of a quiet pod of the same namespace
		far  bool // of a quiet pod of another one, whose labels are team=a
	}{
		"nothing":                   {running("p").Obj(), false, false},
		"preferred affinity":        {running("p").PodAffinity("zone", quiet, st.PodAffinityWithPreferredReq).Obj(), true, false},
		"preferred anti-affinity":   {running("p").PodAntiAffinity("zone", quiet, st.PodAntiAffinityWithPreferredReq).Obj(), true, false},
		"required affinity":         {running("p").PodAffinity("zone", quiet, st.PodAffinityWithRequiredReq).Obj(), true, false},
		"required anti-affinity":    {running("p").PodAntiAffinity("zone", quiet, st.PodAntiAffinityWithRequiredReq).Obj(), false, false}, // a filter
		"about others":              {running("p").PodAffinity("zone", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "loud"}}, st.PodAffinityWithPreferredReq).Obj(), false, false},
		"in all namespaces":         {everywhere(running("p"), &metav1.LabelSelector{}), true, true},
		"in namespaces of a team":   {everywhere(running("p"), &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}), false, true},
		"in namespaces of no team":  {everywhere(running("p"), &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}), false, false},
		"by a pod of another space": {running("p").Namespace("other").PodAffinity("zone", quiet, st.PodAffinityWithPreferredReq).Obj(), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			info := framework.NewNodeInfo(tc.pod, running("twin").Obj())
			info.SetNode(st.MakeNode().Name("n").Obj())
			index := podcount.NewIndex(clusterview.NewIdentifier(nil))
			refresh := func() { index.Refresh(podcount.Snapshot{Nodes: []fwk.NodeInfo{info}}) }
			near := st.MakePod().Namespace("ns").Name("q").Label("app", "quiet").Obj()
			far := st.MakePod().Namespace("other").Name("q").Label("app", "quiet").Obj()
			noLabels := func() labels.Set { return nil }
			ofTeam := func() labels.Set { return labels.Set{"team": "a"} }
			refresh()
			for range 2 { // the second time after a refresh that changes the node
				if got := index.Preferred(near, noLabels); got != tc.want {
					t.Errorf("a quiet pod of the namespace: %t, want %t", got, tc.want)
				}
				if got := index.Preferred(far, ofTeam); got != tc.far {
					t.Errorf("a quiet pod of another namespace: %t, want %t", got, tc.far)
				}
				info.AddPod(running("another").Obj())
				refresh()
			}
			if err := info.RemovePod(klog.FromContext(t.Context()), tc.pod); err != nil {
				t.Fatal(err)
			}
			refresh()
			if index.Preferred(near, noLabels) || index.Preferred(far, ofTeam) {
				t.Error("the pod is gone, and what it preferred is not")
			}
			info.AddPod(tc.pod)
			refresh()
			index.Refresh(podcount.Snapshot{})
			if index.Preferred(near, noLabels) || index.Preferred(far, ofTeam) {
				t.Error("the node is gone, and what its pods preferred is not")
			}
		})
	}
}

// Terms that a profile does not score are none.
func TestPreferredAsAProfileScores(t *testing.T) {
	quiet := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "quiet"}}
	by := func(kind st.PodAffinityKind) *corev1.Pod {
		return st.MakePod().Namespace("ns").Name("p").UID("p").Node("n").PodAffinity("zone", quiet, kind).Obj()
	}
	for scoring, want := range map[clusterview.Scoring][2]bool{ // of a term that is preferred, and of one that is required
		{}:                      {true, true},
		{IgnoresRequired: true}: {true, false},
		{IgnoresTerms: true}:    {false, false},
		{PrefersNodes: true}:    {true, true},
	} {
		for i, pod := range []*corev1.Pod{by(st.PodAffinityWithPreferredReq), by(st.PodAffinityWithRequiredReq)} {
			info := framework.NewNodeInfo(pod)
			info.SetNode(st.MakeNode().Name("n").Obj())
			index := podcount.NewIndex(clusterview.NewIdentifier(nil))
			index.SetScoring(scoring)
			index.Refresh(podcount.Snapshot{Nodes: []fwk.NodeInfo{info}})
			near := st.MakePod().Namespace("ns").Name("q").Label("app", "quiet").Obj()
			if got := index.Preferred(near, func() labels.Set { return nil }); got != want[i] {
				t.Errorf("%+v, term %d: %t, want %t", scoring, i, got, want[i])
			}
		}
	}
}
