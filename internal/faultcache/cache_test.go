// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

func TestARevisionThatDoesNotFailCostsNothing(t *testing.T) {
	r := newRig(t, options())
	r.Assume(pod("a", "").Obj(), "n1")
	for _, name := range []string{"a", "b"} {
		r.see(pod(name, "n1").Obj())
		r.see(r.ready(pod(name, "n1")))
	}
	done := pod("c", "n1").Phase(corev1.PodSucceeded).Obj()
	r.see(done)
	if len(r.podStates)+len(r.tracked)+len(r.assumed) > 0 {
		t.Errorf("told %d, tracked %d, assumed %d", len(r.podStates), len(r.tracked), len(r.assumed))
	}
	if r.Known(done) {
		t.Error("its revision is known")
	}
}

// The first failure has the ledger told of the pods that there are already.
func TestTheFirstFailureLooksAtAllPods(t *testing.T) {
	r := newRig(t, options())
	r.see(r.ready(pod("proven", "n1")))
	r.clock.Step(10 * time.Second)
	r.see(r.ready(pod("young", "n2")))
	r.see(pod("starting", "n2").Obj())
	r.see(pod("leaving", "n3").Terminating().Obj())
	r.see(pod("other", "n3").Label("controller-revision-hash", "2").Obj())
	r.Assume(pod("chosen", "").Obj(), "n3")
	done := pod("done", "n4").Phase(corev1.PodSucceeded).Obj()
	done.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: r.clock.Now()}}}}}
	r.see(done)
	r.reject("web", "n2", 1)
	r.record("n1", placement.Record{Proven: true})
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 2})
	r.record("n3", placement.Record{Unproven: 1})
	r.record("n4", placement.Record{Proven: true})

	r.pass(10 * time.Second)
	r.record("n2", placement.Record{Failures: 1, Proven: true, Unproven: 1})
}

// A pod is unproven from the moment its node is chosen until it proves itself, fails or
// is gone; what ends vanishes from one informer before it appears in the other.
func TestUnproven(t *testing.T) {
	r := newRig(t, options())
	r.reject("web", "n1", 1)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
	waiting := func(n int64) {
		t.Helper()
		r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: n})
	}
	a := pod("a", "").Obj()
	r.Assume(a, "n1")
	waiting(1)
	r.Unassume(a)
	waiting(0)
	r.Assume(a, "n1")
	bound := pod("a", "n1").Obj()
	r.see(bound)
	r.Unassume(a) // too late: it is there
	waiting(1)
	r.must(r.pods.GetIndexer().Delete(bound))
	r.onPodGone(bound)
	waiting(1)
	r.pass(untilEnded)
	waiting(0)

	r.see(bound)
	told := pod("a", "n1").Terminating().Obj()
	r.see(told)
	waiting(0)
	r.onPodGone(told)
	waiting(0)
	r.Assume(pod("b", "").Obj(), "n1")
	r.onPodGone(pod("b", "").Obj())
	waiting(0)
}

func TestProofIsLostWithAFailure(t *testing.T) {
	r := newRig(t, options())
	r.reject("web", "n1", 1)
	r.see(r.ready(pod("a", "n1")))
	r.pass(9 * time.Second)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
	r.pass(time.Second)
	r.record("n1", placement.Record{Failures: 1, Proven: true})
}

func TestOnlyPodsOfTheSchedulerCount(t *testing.T) {
	r := newRig(t, options())
	other := r.rejected(pod("a", "n1").SchedulerName("default-scheduler"))
	pinned := r.rejected(pod("b", "n1").NodeAffinityIn("metadata.name", []string{"n1"}, st.NodeSelectorTypeMatchFields))
	r.see(other)
	r.see(pinned)
	r.Assume(pinned, "n1")
	if r.Known(other) || len(r.assumed) > 0 {
		t.Error("they are known")
	}
}

func TestWarnings(t *testing.T) {
	r := newRig(t, options())
	r.see(pod("a", "n1").Obj())
	warning := func(uid, reason string) *corev1.Event {
		return &corev1.Event{
			Type: corev1.EventTypeWarning, Reason: reason, Source: corev1.EventSource{Component: "kubelet", Host: "n1"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "a", UID: types.UID(uid)},
			FirstTimestamp: metav1.Time{Time: r.clock.Now()},
		}
	}
	r.onWarning(warning("a", "Unhealthy"))
	r.onWarning(warning("another", "FailedCreatePodSandBox"))
	r.record("n1", placement.Record{})
	for range 3 {
		r.onWarning(warning("a", "FailedCreatePodSandBox"))
	}
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
}

func TestAPolicyRules(t *testing.T) {
	r := newRig(t, without(options()))
	r.policy = clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{Spec: placementv1alpha1.PlacementPolicySpec{
		Faults: &placementv1alpha1.Faults{Threshold: new(int32(2)), WindowSeconds: new(int32(60))},
	}})
	r.reject("web", "n1", 2)
	if got := r.For(pod("p", "").Obj()).Rule(); got != (placement.Faults{Threshold: 2, HalfOpen: true}) {
		t.Errorf("the rule is %+v", got)
	}
	if marks := r.ledger.Marks(); len(marks) != 1 {
		t.Errorf("marks are %+v", marks)
	}
	r.pass(time.Minute)
	if marks := r.ledger.Marks(); len(marks) != 0 {
		t.Errorf("after its window marks are %+v", marks)
	}
}

func TestForgetting(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 1)
	r.see(pod("a", "n2").Obj())
	r.reject("web", "n2", 1)
	nodes := r.Informers.Core().V1().Nodes().Informer().GetIndexer()
	n1, _, err := nodes.GetByKey("n1")
	r.must(err)
	r.onNodeGone(n1)
	r.record("n1", placement.Record{})

	mended := st.MakeNode().Name("n2").Annotation(clusterview.FailuresForgivenAnnotation, noon.Format(time.RFC3339)).Obj()
	before, _, err := nodes.GetByKey("n2")
	r.must(err)
	r.join(mended)
	r.onNode(before, mended)
	r.reject("web", "n2", 1) // at the very moment
	r.reject("web", "n3", 1)
	r.record("n2", placement.Record{Unproven: 1})
	r.clock.Step(time.Second)
	r.reject("web", "n2", 1)
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})

	// It forgives what was up to its time, and nothing later.
	another := st.MakeNode().Name("n2").Annotation(clusterview.FailuresForgivenAnnotation, noon.Add(-time.Hour).Format(time.RFC3339)).Obj()
	r.join(another)
	r.onNode(mended, another)
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})

	gone := pod("a", "n2").Obj()
	r.must(r.pods.GetIndexer().Delete(gone))
	r.onPodGone(gone)
	r.pass(absence - sweeping)
	if !r.Known(gone) {
		t.Error("the revision is forgotten too soon")
	}
	r.pass(2 * sweeping)
	if r.Known(gone) || len(r.tracked)+len(r.podStates) > 0 {
		t.Errorf("a revision without pods is not forgotten: tracked %d, told %d", len(r.tracked), len(r.podStates))
	}
}

func TestChanged(t *testing.T) {
	r := newRig(t, without(options()))
	faults := r.For(pod("p", "").Obj())
	if nodes, anew, version := faults.Changed(web("1"), 0); len(nodes) > 0 || anew || version != 0 {
		t.Errorf("without failures: %q, %v, %d", nodes, anew, version)
	}
	r.reject("web", "n1", 1)
	nodes, anew, version := faults.Changed(web("1"), 0)
	if !slices.Equal(nodes, []string{"n1"}) || anew {
		t.Errorf("with one: %q, %v", nodes, anew)
	}
	r.reject("web", "n2", 1)
	if nodes, _, _ = faults.Changed(web("1"), version); !slices.Contains(nodes, "n2") {
		t.Errorf("with another: %q", nodes)
	}
}

// Most pods are of revisions that do not fail, and each changes a handful of times.
func BenchmarkHealthyPod(b *testing.B) {
	for name, failing := range map[string]bool{"nothing fails": false, "another workload fails": true} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, options())
			if failing {
				r.reject("db", "n1", 1)
			}
			p := r.ready(pod("a", "n1"))
			b.ReportAllocs()
			for b.Loop() {
				r.onPod(p)
			}
		})
	}
}
