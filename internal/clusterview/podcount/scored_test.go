// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
			remove(t, info, tc.pod)
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

// An image is known for as long as one node has it.
func TestHasImage(t *testing.T) {
	v := newView("a")
	pod := st.MakePod().Name("p").Container("web:2").Obj()
	check := func(when string, want bool) {
		t.Helper()
		v.refresh()
		if got := v.index.HasImage(pod); got != want {
			t.Errorf("%s: %t, want %t", when, got, want)
		}
	}
	with := func(name string, images ...string) *corev1.Node {
		sizes := make(map[string]int64)
		for _, i := range images {
			sizes[i] = 1
		}
		return st.MakeNode().Name(name).Images(sizes).Obj()
	}
	check("no node has any", false)
	v.join(with("b", "web:1"))
	check("one has another", false)
	v.join(with("c", "web:2", "db:1"))
	check("one has it", true)
	v.info("b").SetNode(with("b", "web:1", "web:2"))
	check("two have it", true)
	v.info("c").SetNode(with("c", "db:1"))
	check("one has removed it", true)
	v.leave("b")
	check("the other is gone", false)
	v.info("c").SetNode(with("c", "db:1", "web:2"))
	check("it was pulled again", true)
	v.info("c").SetNode(with("c"))
	check("all were removed", false)
}

// The images are those that ImageLocality looks for, by the names that it gives them.
func TestHasImageOfAnyKind(t *testing.T) {
	v := newView()
	v.join(st.MakeNode().Name("a").Images(map[string]int64{"web:latest": 1, "example.com:5000/db:latest": 1, "tool@sha256:1234": 1}).Obj())
	v.refresh()
	init := st.MakePod().Container("none:1").Obj()
	init.Spec.InitContainers = []corev1.Container{{Image: "web"}}
	volume := st.MakePod().Container("none:1").Obj()
	volume.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "web"}}}}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a tag":               {st.MakePod().Container("web:latest").Obj(), true},
		"another tag":         {st.MakePod().Container("web:1").Obj(), false},
		"no tag":              {st.MakePod().Container("web").Obj(), true},
		"a registry's port":   {st.MakePod().Container("example.com:5000/db").Obj(), true},
		"a digest":            {st.MakePod().Container("tool@sha256:1234").Obj(), true},
		"another digest":      {st.MakePod().Container("tool@sha256:5678").Obj(), false},
		"of a later one":      {st.MakePod().Container("none:1").Container("web").Obj(), true},
		"of an init one":      {init, true},
		"of an image volume":  {volume, true},
		"no container at all": {st.MakePod().Obj(), false},
	} {
		if got := v.index.HasImage(tc.pod); got != tc.want {
			t.Errorf("%s: it is known: %t, want %t", name, got, tc.want)
		}
	}
}
