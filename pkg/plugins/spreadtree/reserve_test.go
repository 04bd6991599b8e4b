// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func mustLevels(t placementtest.TB, pod *corev1.Pod) []level.Level {
	t.Helper()
	ls, err := clusterview.Levels(pod, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return clusterview.AboveNodes(ls, false) // the nodes of the rig have no host names
}

func TestReserveAndUnreserve(t *testing.T) {
	r := zones(t)
	r.runs("b1", "1", 1) // so that the batch has a tree of its own
	pod := webPod("p", "spread=zone").Obj()
	state := framework.NewCycleState()
	r.rank(pod, state)
	assumed := r.assume(pod, state, "a1")
	if got := r.counted(pod, "a1"); got != onePod {
		t.Errorf("after Reserve the tree counts %+v", got)
	}
	for range 2 { // it may be called more than once
		r.pl.Unreserve(r.ctx, state, assumed, "a1")
	}
	r.must(r.cache.ForgetPod(r.logger, assumed))
	r.rank(pod, framework.NewCycleState())
	if got := r.counted(pod, "a1"); got != (placement.Tally{}) {
		t.Errorf("in the next cycle the tree counts %+v", got)
	}
}

// The framework calls Unreserve of all plugins when Reserve of one failed, whether
// theirs was reached or not.
func TestUnreserveWithoutReserve(t *testing.T) {
	r := zones(t)
	pod := webPod("p", "spread=zone").Obj()
	state := framework.NewCycleState()
	r.rank(pod, state)
	r.pl.Unreserve(r.ctx, state, pod, "a1")
	if got := r.counted(pod, "a1"); got != (placement.Tally{}) {
		t.Errorf("the tree counts %+v", got)
	}
}

// A pod for which a single node fits is reserved without having been scored: there
// may be no tree of its batch, or one of an older snapshot.
func TestReserveWithoutPreScore(t *testing.T) {
	r := zones(t)
	pod := webPod("p", "spread=zone").Obj()
	state := framework.NewCycleState()
	assumed := r.assume(pod, state, "a1")
	if n := r.pl.forest.trees.Len(); n != 0 {
		t.Errorf("Reserve grew %d trees", n)
	}
	next := webPod("q", "spread=zone").Obj()
	if got := r.place(next); got != "b1" {
		t.Errorf("the next pod went to %s", got)
	}
	r.pl.Unreserve(r.ctx, state, assumed, "a1")
	r.must(r.cache.ForgetPod(r.logger, assumed))
	r.rank(webPod("r", "spread=zone").Obj(), framework.NewCycleState())
	if a, b := r.counted(next, "a1"), r.counted(next, "b1"); a != (placement.Tally{}) || b != onePod {
		t.Errorf("the tree counts %+v on a1 and %+v on b1", a, b)
	}
}

// A pod that is deleted while it is being bound is taken out of the cache at once,
// and its reservation back when the binding fails.
func TestRegression_DeletedWhileBinding(t *testing.T) {
	r := zones(t)
	r.runs("b1", "1", 1) // so that the batch has a tree of its own
	pod := webPod("p", "spread=zone").Obj()
	state := framework.NewCycleState()
	r.rank(pod, state)
	assumed := r.assume(pod, state, "a1")
	r.must(r.cache.RemoveAssumedPod(r.logger, assumed))
	r.rank(webPod("q", "spread=zone").Obj(), framework.NewCycleState())
	r.pl.Unreserve(r.ctx, state, assumed, "a1")
	r.must(r.cache.ForgetPod(r.logger, assumed))
	r.rank(webPod("r", "spread=zone").Obj(), framework.NewCycleState())
	if got := r.counted(pod, "a1"); got != (placement.Tally{}) {
		t.Errorf("the tree counts %+v", got)
	}
}

// A binding whose answer is lost has failed for the scheduler, while the pod is bound.
func TestRegression_BoundThoughTheBindingFailed(t *testing.T) {
	r := zones(t)
	r.runs("b1", "1", 1) // so that the batch has a tree of its own
	pod := webPod("p", "spread=zone").Obj()
	state := framework.NewCycleState()
	r.rank(pod, state)
	assumed := r.assume(pod, state, "a1")
	r.must(r.cache.AddPod(r.logger, assumed))
	r.rank(webPod("q", "spread=zone").Obj(), framework.NewCycleState())
	r.pl.Unreserve(r.ctx, state, assumed, "a1")
	if err := r.cache.ForgetPod(r.logger, assumed); err == nil {
		t.Error("the cache forgot a pod that is bound")
	}
	r.rank(webPod("r", "spread=zone").Obj(), framework.NewCycleState())
	if got := r.counted(pod, "a1"); got != onePod {
		t.Errorf("the tree counts %+v", got)
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
	if s := r.pl.Reserve(r.ctx, framework.NewCycleState(), g1, "a1"); !s.IsSuccess() {
		t.Fatal(s)
	}
	r.preScore(g2)
	if got := r.counted(g2, "a1").Revision; got != 1 {
		t.Errorf("within the cycle the tree counts %d pods of the group on a1, want 1", got)
	}
	r.pl.Unreserve(r.ctx, framework.NewCycleState(), g1, "a1")
	r.must(r.snapshot.ForgetPod(r.logger, g1))
	r.preScore(g2)
	if got := r.counted(g2, "a1").Revision; got != 0 {
		t.Errorf("after the group failed the tree counts %d pods of it on a1", got)
	}
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

// Bindings that fail take their pods back while the next pods are decided.
func TestBindingsFailWhilePodsAreDecided(t *testing.T) {
	r := zones(t)
	const pods = 200
	type bound struct {
		pod   *corev1.Pod
		state fwk.CycleState
	}
	failing := make(chan bound, pods)
	var binders sync.WaitGroup
	for range 4 {
		binders.Go(func() {
			for b := range failing {
				r.pl.Unreserve(context.Background(), b.state, b.pod, b.pod.Spec.NodeName)
				if err := r.cache.ForgetPod(r.logger, b.pod); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range pods {
		pod := webPod(fmt.Sprint("p", i), "spread=zone").Obj()
		state := framework.NewCycleState()
		scores := r.rank(pod, state)
		best := ""
		for _, name := range sortedKeys(scores) {
			if scores[name] == fwk.MaxScore {
				best = name
			}
		}
		assumed := r.assume(pod, state, best)
		if i%3 == 0 {
			failing <- bound{assumed, state}
		}
	}
	close(failing)
	binders.Wait()

	last := webPod("last", "spread=zone").Obj()
	r.rank(last, framework.NewCycleState())
	var sum int64
	for _, node := range []string{"a1", "a2", "b1"} {
		sum += r.counted(last, node).Revision
	}
	if want := int64(pods - (pods+2)/3); sum != want {
		t.Errorf("the tree counts %d pods, and %d were bound", sum, want)
	}
	if err := r.treeOf(last).Validate(); err != nil {
		t.Error(err)
	}
}
