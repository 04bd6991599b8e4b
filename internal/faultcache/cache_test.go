// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
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
	r.vanish(bound)
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
	warn := func(uid types.UID, reason string) { r.onWarning(warning(uid, "n1", reason, r.clock.Now())) }
	warn("a", "Unhealthy")
	warn("another", "FailedCreatePodSandBox")
	r.record("n1", placement.Record{})
	for range 3 {
		warn("a", "FailedCreatePodSandBox")
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
	r.onNodeGone(r.nodeNow("n1"))
	r.record("n1", placement.Record{})

	r.annotate("n2", noon.Format(time.RFC3339))
	r.reject("web", "n2", 1) // at the very moment
	r.reject("web", "n3", 1)
	r.record("n2", placement.Record{Unproven: 1})
	r.clock.Step(time.Second)
	r.reject("web", "n2", 1)
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})

	// It forgives what was up to its time, and nothing later.
	r.annotate("n2", noon.Add(-time.Hour).Format(time.RFC3339))
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})

	gone := pod("a", "n2").Obj()
	r.vanish(gone)
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

// Pods are signed under the lock of the scheduling queue. Whatever is done under the lock of
// the cache meanwhile, it is answered whether a revision is known.
func TestKnownWaitsForNobody(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for workload, want := range map[string]bool{"web": true, "other": false} {
		answer := make(chan bool, 1)
		go func() { answer <- r.Known(podOfWorkload(workload, "asking", "").Obj()) }()
		select {
		case got := <-answer:
			if got != want {
				t.Errorf("%s is known: %t", workload, got)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("nothing is said of %s while the lock is held", workload)
		}
	}
}

// A revision that is forgotten is not known any more, and one that comes back is.
func TestKnownAgain(t *testing.T) {
	r := newRig(t, without(options()))
	asking := pod("asking", "").Obj()
	for range 2 {
		r.reject("web", "n1", 1)
		if !r.Known(asking) {
			t.Error("it has failed and is not known")
		}
		r.part("n1")
		if r.Known(asking) {
			t.Error("it is known by a node that is gone")
		}
		r.again("n1")
		r.clock.Step(time.Second)
	}
}

// An error is said to be the workload's own when it has become so, and once.
func TestOwnErrorsAreSaidOnce(t *testing.T) {
	r := newRig(t, options())
	look := func(want int) []ownError {
		t.Helper()
		fresh := r.lookAtOwnErrors()
		if len(fresh) != want {
			t.Errorf("%v are new, want %d", fresh, want)
		}
		return fresh
	}
	r.reject("web", "n1", 1)
	look(0)
	r.reject("web", "n2", 1)
	for _, e := range look(1) {
		if e.kind != "OutOfcpu" || e.onNodes != 2 || e.ofNodes != 2 {
			t.Errorf("it is %+v", e)
		}
	}
	r.reject("web", "n2", 3)
	look(0)
}

// The half of SwarmKit's vector that is about preassigned tasks: as often as they fail on the node
// that was chosen for them, nothing is held against it, while tasks that were placed mark theirs.
func TestVector_2_5_F1(t *testing.T) {
	r := newLeader(t, without(options()))
	for round := range 8 {
		pinned := podOfWorkload("agent", fmt.Sprint("agent-", round), "n1").NodeAffinityIn("metadata.name", []string{"n1"}, st.NodeSelectorTypeMatchFields)
		r.see(r.rejected(pinned))
		r.reject("web", "n2", 1)
		if got := r.For(pinned.Obj()).Record(r.Identify(pinned.Obj()), "n1"); got != (placement.Record{}) {
			t.Errorf("round %d: %+v is held against the node of the preassigned pods", round, got)
		}
		r.record("n2", placement.Record{Failures: round + 1, Unforgiven: round + 1})
	}
	r.pass(r.options.ProvenAfter)
	marks := r.ledger.Marks()
	if len(marks) != 1 || marks[0].Node != "n2" {
		t.Errorf("marked are %v, want n2 for the pods that were placed, alone", marks)
	}
}

// What was assumed of a pod does not outlive that it is seen to be otherwise: its node would be on trial for ever.
func TestRegression_AssumedOtherwise(t *testing.T) {
	for name, otherwise := range map[string]func(*corev1.Pod){
		"bound elsewhere":              func(p *corev1.Pod) { p.Spec.NodeName = "n2" },
		"of another revision":          func(p *corev1.Pod) { p.Labels["controller-revision-hash"] = "2" },
		"of an owner that is not seen": func(p *corev1.Pod) { p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID = "ReplicaSet", "unseen" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, without(options()))
			r.reject("web", "n1", 1)
			a := pod("a", "").Obj()
			r.Assume(a, "n1")
			r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
			b := a.DeepCopy()
			b.Spec.NodeName = "n1"
			otherwise(b)
			r.see(b)
			r.Unassume(a)
			r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
			r.leave(b)
			r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
			r.record("n2", placement.Record{})
		})
	}
}

// A pod may change its labels at any time.
func TestRegression_SeenAndRelabelled(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 1)
	a := pod("a", "n1").Obj()
	r.see(a)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
	b := a.DeepCopy()
	b.Labels["controller-revision-hash"] = "2"
	r.see(b)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
}

// A pod whose ReplicaSet is not seen yet is on trial where it was assumed, until it is gone.
func TestAssumedAndProvisional(t *testing.T) {
	r := newRig(t, without(options()))
	_, gone := r.seeReplicaSet("uid")
	r.see(ofReplicaSet(r.rejected(pod("first", "n1")), "uid"))
	a := ofReplicaSet(pod("a", "").Obj(), "uid")
	id := r.Identify(a)
	unproven := func(want int64) {
		t.Helper()
		if got := r.For(a).Record(id, "n1").Unproven; got != want {
			t.Errorf("%d are unproven, want %d", got, want)
		}
	}
	r.Assume(a, "n1")
	unproven(1)
	gone()
	b := a.DeepCopy()
	b.Spec.NodeName = "n1"
	r.see(b)
	unproven(1)
	r.leave(b)
	unproven(0)
	if len(r.assumed) > 0 {
		t.Error("it is assumed for ever")
	}
}

// A warning of a pod whose ReplicaSet is not seen yet is told when it is.
func TestRegression_WarningsBeforeReplicaSets(t *testing.T) {
	r := newRig(t, without(options()))
	ours := func(name string) *corev1.Pod { return ofReplicaSet(pod(name, "n1").Obj(), "uid") }
	warn := func(p *corev1.Pod, reason string) { r.onWarning(warning(p.UID, "n1", reason, r.clock.Now())) }
	hangs, gone := ours("hangs"), ours("gone")
	r.see(hangs)
	r.see(gone)
	for range 2 {
		warn(hangs, "FailedCreatePodSandBox")
	}
	warn(hangs, "FailedMount")
	warn(gone, "FailedMount")
	if r.Known(hangs) {
		t.Error("it is told of a workload that is not known")
	}
	r.leave(gone)
	r.pass(sweeping)
	if len(r.pending) != 1 {
		t.Errorf("of %d pods something is remembered, want 1", len(r.pending))
	}
	rs, _ := r.seeReplicaSet("uid")
	rs.Spec.Template.Labels = hangs.Labels
	r.onReplicaSet(nil, rs)
	if got := r.For(hangs).Record(r.Identify(hangs), "n1"); got.Unforgiven != 2 || got.Unproven != 0 {
		t.Errorf("the record is %+v", got)
	}
	if len(r.pending) > 0 {
		t.Error("what was told is remembered")
	}
}
