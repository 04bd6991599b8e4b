// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// keeps reports that there is a tree of a pod's batch alone. Unlike treeOf it uses none.
func (r *rig) keeps(pod *corev1.Pod) bool {
	b := batch{r.pl.identifier.Identify(pod), mustLevels(r, pod)}
	return r.pl.forest.trees.byKey[b.key()] != nil
}

func TestIdleTreesAreFelled(t *testing.T) {
	r := zones(t)
	now := newClock()
	r.pl.keeper.clock = now
	r.runs("a1", "1", 1)
	used, idle := webPod("used", "spread=zone").Obj(), webPod("idle", "pack=zone").Obj()
	r.rank(idle, framework.NewCycleState())
	census := r.pl.forest.census
	for i := range 3 {
		r.rank(used, framework.NewCycleState())
		if want := []bool{true, true, false}[i]; r.keeps(idle) != want {
			t.Errorf("after %d visits it is %t that the idle tree is kept", i, !want)
		}
		now.advance(maxIdle)
	}
	if !r.keeps(used) || r.pl.forest.census != census {
		t.Error("a tree that was used since the last visit, or its census, is gone")
	}
	now.advance(maxIdle)
	if n := r.pl.forest.trees.Len(); n != 0 || r.pl.forest.census == census {
		t.Errorf("a scheduler that does nothing keeps %d trees and its census", n)
	}
	if now.HasWaiters() {
		t.Error("a scheduler that keeps no tree has a timer")
	}
	if scores := r.rank(used, framework.NewCycleState()); scores["b1"] != 100 || scores["a2"] == 100 {
		t.Errorf("planted again, the tree gives %v", scores)
	}
	if !now.HasWaiters() {
		t.Error("nobody will look after the tree that was planted again")
	}
}

// Bare pods and Jobs of one pod: what a tree of their own would say, the shared one says.
func TestWorkloadsOfOnePodShareATree(t *testing.T) {
	r := zones(t)
	r.runs("a2", "2", 1)
	alone := func(name string) string {
		pod := ofWorkload(name, name, "spread=zone").Obj()
		if r.treeOf(pod) != nil {
			t.Errorf("%s has a tree of its own", name)
		}
		return r.place(pod)
	}
	// Zone a has more nodes; in it the node with fewer pods comes first.
	for i, want := range []string{"a1", "a1", "a2", "a1"} {
		if got := alone(string(rune('p' + i))); got != want {
			t.Errorf("pod %d went to %s, want %s", i, got, want)
		}
	}
	if n := r.pl.forest.trees.Len(); n != 1 {
		t.Errorf("there are %d trees", n)
	}
	if err := r.shown(ofWorkload("z", "z", "spread=zone").Obj()).Validate(); err != nil {
		t.Error(err)
	}
	if got := r.place(ofWorkload("p", "second", "spread=zone").Obj()); got != "b1" {
		t.Errorf("the second pod of p went to %s, want b1: the first is in zone a", got)
	}
	if n := r.pl.forest.trees.Len(); n != 2 {
		t.Errorf("there are %d trees after the second pod of a workload, want 2", n)
	}
}
