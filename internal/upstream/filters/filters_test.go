// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func node(name, zone, label string) *st.NodeWrapper {
	return st.MakeNode().Name(name).Label("kubernetes.io/hostname", name).Label("zone", zone).Label("story", label).
		Capacity(map[corev1.ResourceName]string{"cpu": "2", "pods": "10"})
}

func pod(name string) *st.PodWrapper {
	return st.MakePod().Namespace("ns").Name(name).UID(name).Label("app", "web").Req(map[corev1.ResourceName]string{"cpu": "1"})
}

// What kube-scheduler would say of another pod like one that runs.
func TestFits(t *testing.T) {
	web := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, tc := range map[string]struct {
		change func(*st.PodWrapper)
		fits   map[string]bool
	}{
		"room":      {func(*st.PodWrapper) {}, map[string]bool{"a": true, "full": false, "cordoned": false, "tainted": false, "b": true, "nowhere": false}},
		"selector":  {func(p *st.PodWrapper) { p.NodeSelector(map[string]string{"story": "mine"}) }, map[string]bool{"a": true, "b": false}},
		"tolerated": {func(p *st.PodWrapper) { p.Toleration("key") }, map[string]bool{"tainted": true}},
		"beside none of its own": {func(p *st.PodWrapper) {
			p.PodAntiAffinity("kubernetes.io/hostname", &web, st.PodAntiAffinityWithRequiredReq)
		}, map[string]bool{"a": false, "b": true}},
		"hard constraint": {func(p *st.PodWrapper) {
			p.SpreadConstraint(1, "zone", corev1.DoNotSchedule, &web, nil, nil, nil, nil)
		}, map[string]bool{"a": false, "b": true}},
		"too large": {func(p *st.PodWrapper) { p.Req(map[corev1.ResourceName]string{"cpu": "9"}) }, map[string]bool{"a": false, "b": false}},
	} {
		t.Run(name, func(t *testing.T) {
			one := pod("one")
			tc.change(one)
			runs := one.Obj()
			runs.Spec.NodeName = "a"
			c, err := New(t.Context(), []*corev1.Node{
				node("a", "a", "mine").Obj(), node("b", "b", "other").Obj(), node("full", "b", "other").Obj(),
				node("cordoned", "b", "other").Unschedulable(true).Obj(), node("tainted", "b", "other").Taints([]corev1.Taint{{Key: "key", Effect: corev1.TaintEffectNoSchedule}}).Obj(),
			}, []*corev1.Pod{runs, pod("stranded").PodAntiAffinity("zone", &web, st.PodAntiAffinityWithRequiredReq).Node("gone").Obj(), pod("other").Label("app", "db").Req(map[corev1.ResourceName]string{"cpu": "2"}).Node("full").Obj()}, nil)
			if err != nil {
				t.Fatal(err)
			}
			fits, err := c.Fits(t.Context(), runs)
			if err != nil {
				t.Fatal(err)
			}
			for node, want := range tc.fits {
				if got := fits(node); got != want {
					t.Errorf("node %s: %t, want %t", node, got, want)
				}
			}
		})
	}
}
