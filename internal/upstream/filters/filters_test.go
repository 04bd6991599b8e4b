// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// must ends the test if there is an error.
var must = placementtest.Must

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
			must(t, err)
			fits, err := c.Fits(t.Context(), runs)
			must(t, err)
			for node, want := range tc.fits {
				if got := fits(node); got != want {
					t.Errorf("node %s: %t, want %t", node, got, want)
				}
			}
		})
	}
}

// A hard constraint allows two pods of difference with three pods in two zones while the one is there that is to go, and not when it is gone.
func TestFitsInstead(t *testing.T) {
	web := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	on := func(name, node string) *corev1.Pod {
		return pod(name).SpreadConstraint(1, "zone", corev1.DoNotSchedule, &web, nil, nil, nil, nil).Node(node).Obj()
	}
	one := on("one", "a")
	c, err := New(t.Context(), []*corev1.Node{node("a", "a", "mine").Obj(), node("b", "b", "mine").Obj()}, []*corev1.Pod{one, on("two", "b")}, nil)
	must(t, err)
	for name, tc := range map[string]struct {
		ask  func(context.Context, *corev1.Pod) (func(string) bool, error)
		a, b bool
	}{"while it is there": {c.Fits, true, true}, "when it is gone": {c.FitsInstead, true, false}} {
		fits, err := tc.ask(t.Context(), one)
		must(t, err)
		if a, b := fits("a"), fits("b"); a != tc.a || b != tc.b {
			t.Errorf("%s: a takes another one: %t, b: %t, want %t and %t", name, a, b, tc.a, tc.b)
		}
	}
	if c, err = New(t.Context(), []*corev1.Node{node("a", "a", "mine").Obj()}, []*corev1.Pod{one, on("two", "a")}, nil); err != nil {
		t.Fatal(err)
	}
	for want, ask := range map[bool]func(context.Context, *corev1.Pod) (func(string) bool, error){false: c.Fits, true: c.FitsInstead} {
		if fits, err := ask(t.Context(), one); err != nil || fits("a") != want {
			t.Errorf("what a pod holds is to be free when it is gone, and not before: %v", err)
		}
	}
}
