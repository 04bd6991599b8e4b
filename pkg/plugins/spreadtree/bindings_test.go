// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// A pod is counted from the moment it is assumed in the scheduler's cache until it is
// forgotten there: the plugin keeps no reservations of its own.
func TestAssumedPodsAreCounted(t *testing.T) {
	r := zones(t)
	pod := webPod("p", "spread=zone").Obj()
	assumed := r.assume(pod, "a1")
	if got := r.place(webPod("q", "spread=zone").Obj()); got != "b1" {
		t.Errorf("the next pod went to %s", got)
	}
	if got := r.counted(pod, "a1"); got != [2]int64{1, 1} {
		t.Errorf("with the pod assumed the tree counts %v", got)
	}
	r.must(r.cache.ForgetPod(r.logger, assumed))
	r.rank(pod, framework.NewCycleState())
	if a, b := r.counted(pod, "a1"), r.counted(pod, "b1"); a != [2]int64{} || b != [2]int64{1, 1} {
		t.Errorf("in the next cycle the tree counts %v on a1 and %v on b1", a, b)
	}
}

// In a cycle for a group of pods the scheduler assumes them in the snapshot alone. A
// node that is the only one that fits is taken without PreScore; when the group
// fails the snapshot gives the node its old generation back.
func TestRegression_GroupCycle(t *testing.T) {
	r := zones(t)
	other := st.MakePod().Namespace("x").Name("o").UID("o").Node("a1").Obj()
	g1, g2 := webPod("g1", "spread=zone").Node("a1").Obj(), webPod("g2", "spread=zone").Obj()
	r.rank(g2, framework.NewCycleState())
	r.must(r.cache.AddPod(r.logger, other))
	r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))

	info, err := framework.NewPodInfo(g1)
	r.must(err)
	r.must(r.snapshot.AssumePod(info))
	r.preScore(g2)
	if got := r.groupCounted(g2, "a1"); got != 1 {
		t.Errorf("within the cycle the tree counts %d pods of the group on a1, want 1", got)
	}
	r.must(r.snapshot.ForgetPod(r.logger, g1))
	r.preScore(g2)
	if got := r.groupCounted(g2, "a1"); got != 0 {
		t.Errorf("after the group failed the tree counts %d pods of it on a1", got)
	}
}

// groupCounted is what the tree counts of a revision on a node, in the snapshot as it is.
func (r *rig) groupCounted(pod *corev1.Pod, node string) int64 {
	r.Helper()
	id, _ := r.pl.trees.index.Nodes().Find(node)
	revision, _ := r.shown(pod).Tally.Pods(id)
	return revision
}

// preScore scores a pod on the snapshot as it is.
func (r *rig) preScore(pod *corev1.Pod) {
	r.Helper()
	nodes, err := r.snapshot.NodeInfos().List()
	r.must(err)
	if s := r.pl.PreScore(r.ctx, framework.NewCycleState(), pod, nodes); !s.IsSuccess() {
		r.Fatal(s)
	}
}
