// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"maps"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The order of nodes on which others make way is that of the tree, in which pods that are nominated count, but not
// longer than it takes to say so.
func TestOrderForVictims(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a")
	r.join("a2", "zone=a")
	r.join("b1", "zone=b")
	r.join("c1", "zone=c")
	r.runs("a1", "2", 1)
	pod := webPod("p", "spread=zone").Obj()
	order := func() map[string]int64 {
		t.Helper()
		r.feasible()
		got, err := r.pl.Order(r.ctx, framework.NewCycleState(), pod, []string{"a1", "a2", "b1"})
		r.must(err)
		return got
	}
	expect := func(when string, want map[string]int64) {
		t.Helper()
		if got := order(); !maps.Equal(got, want) {
			t.Errorf("%s: the order is %v, want %v", when, got, want)
		}
	}
	expect("with a pod in zone a", map[string]int64{"b1": 0, "a2": -1, "a1": -2})
	r.nominatePod("b1", webPod("q", "spread=zone").Obj())
	r.nominatePod("b1", webPod("r", "spread=zone").Obj())
	expect("with two nominated for zone b", map[string]int64{"a2": 0, "a1": -1, "b1": -2})
	r.nominatePod("a2", pod)
	expect("the pod itself does not count", map[string]int64{"a2": 0, "a1": -1, "b1": -2})
	if got := r.counted(pod, "b1"); got != [2]int64{} {
		t.Errorf("the pods that are nominated are counted as %v afterwards", got)
	}
}

// To a pod that somebody else has chosen a node for, all nodes are equal.
func TestOrderOfPreassigned(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a")
	r.runs("a1", "2", 1)
	r.join("b1", "zone=b")
	r.feasible()
	pod := webPod("p", "spread=zone").OwnerReference("ds", daemonSet).Obj()
	if got, err := r.pl.Order(r.ctx, framework.NewCycleState(), pod, []string{"a1", "b1"}); err != nil || got["a1"] != got["b1"] {
		t.Errorf("the order is %v, %v", got, err)
	}
}
