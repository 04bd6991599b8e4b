// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
)

// wantHeld wants a pod to be held with a message that has a part, or to be let in if the part is "".
func (r *rig) wantHeld(p *corev1.Pod, part string) {
	r.t.Helper()
	switch err := r.Admit(p); {
	case part == "" && err != nil:
		r.t.Errorf("%s is held: %v", p.Name, err)
	case part != "" && (err == nil || !strings.Contains(err.Error(), part)):
		r.t.Errorf("%s is held for %v, want %q", p.Name, err, part)
	}
}

// Who has nothing to do with allocations is let in at once, and pods of an allocation when their position is known.
func TestAdmit(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	r.wantHeld(r.pod("none", "x"), "")
	first := r.pod("first", "a")
	r.wantHeld(first, "its position among the pods of partition \"p\" is not known yet: it is computed every 2s")
	r.computes("first")
	r.wantHeld(first, "")
	// Nobody waits, so that one who comes then passes nobody by.
	r.wantHeld(r.pod("second", "a"), "")
	far := r.pod("far", "a", func(p *corev1.Pod) { p.Namespace = "far" })
	r.wantHeld(far, `namespace "far" is not known yet`)
	must(r.t, r.namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "far"}}))
	r.namespaceChanged(nil, &corev1.Namespace{})
	r.computes("far")
}

// While it is not known whether there are allocations nobody is let in as if there were none, but for pods of a DaemonSet.
func TestNobodyIsLetInUnknown(t *testing.T) {
	r := newRig(t)
	r.of[ofAllocations] = optionalkind.New("Allocations", "allocations", handler(r.Tenants, r.allocations, allocations.DecodeAllocation))
	p := r.pod("pod", "x")
	r.wantHeld(p, "Allocations have not been read yet: see whether the API server answers")
	r.wantHeld(r.pod("daemon", "x", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: new(true)}}
	}), "")
	r.of[ofAllocations].Fail(errors.New("it is down"))
	r.wantHeld(p, "Allocations cannot be read: it is down")
	r.of[ofAllocations].Settle()
	r.computes("pod")
}

// Of many pods the first are let in, and others when these have been tried. The message says where a pod is.
func TestWindow(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	all := r.podsOf("a", 300)
	r.admit(all...)
	r.Compute()
	if n := len(r.woken); n != windowSize {
		t.Fatalf("%d pods were let in, want %d", n, windowSize)
	}
	r.woken = nil
	r.wantHeld(all[windowSize-1], "")
	r.wantHeld(all[windowSize], fmt.Sprintf(`it waits until those before it have been tried: position %d of 300 in partition "p", allocation "a"`, windowSize+1))
	for _, p := range all[:windowSize/2] {
		r.take(p)
	}
	if n := len(r.woken); n != windowSize/2 {
		t.Errorf("%d pods were let in for those that were tried, want %d", n, windowSize/2)
	}
	r.wantHeld(all[windowSize], "")
	r.Compute()
	r.wantHeld(all[0], "") // it was tried, and is not held again
}

// Pods that are reserved while the order is computed take no room in the window: others are let in for those that are tried.
func TestReservedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	all := r.podsOf("a", 3*windowSize)
	r.admit(all...)
	r.Compute()
	before, _ := r.Order()
	for _, p := range all[:windowSize] {
		r.take(p)
		if _, ok := r.reserve(p); !ok {
			t.Fatalf("%s was not reserved", p.Name)
		}
	}
	r.take(all[windowSize]) // there is room for another one
	r.wantHeld(all[2*windowSize-1], "")
	r.replace(before, all) // it knows of no reservation
	r.wantHeld(all[2*windowSize], "")
}

// Who waits behind others is let in with the order that is computed meanwhile, if its allocation is gone since: that order does not know.
func TestGoneMeanwhile(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	all := r.podsOf("a", windowSize+1)
	r.admit(all...)
	r.Compute()
	last := all[windowSize]
	r.wantHeld(last, "it waits until those before it have been tried")
	before, _ := r.Order()
	r.gone("a")
	if woken := r.replace(before, all); woken[string(last.UID)] == nil {
		t.Error("it is not let in")
	}
}

// What holds a pod says so, and the pod is put into the queue when it holds it no more.
func TestReasons(t *testing.T) {
	r := newRig(t)
	r.allocation("a", reserving(1), capped(100))
	r.podsOf("a", 1)
	second := r.pod("second", "a")
	r.Compute()
	r.wantHeld(second, "as its maxUtilizationPercent lets run")
	r.allocation("a", reserving(1), capped(200))
	r.computes("second")
	// Nobody waits, but whether one who comes then is beyond the maximum is not known before it is in the order.
	third := r.pod("third", "a")
	r.wantHeld(third, "its position among the pods")
	r.Compute()
	r.wantHeld(third, "as its maxUtilizationPercent lets run")

	odd := r.pod("odd", "a", func(p *corev1.Pod) {
		p.Annotations = map[string]string{clusterview.AllocationPriorityAnnotation: "odd"}
	})
	r.wantHeld(odd, `annotation espalier.dev/allocation-priority "odd": write a number from 0 to 100`)
	r.allocation("a", func(s *placementv1alpha1.AllocationSpec) { s.Partition = "gone" })
	r.Compute()
	r.woken = nil
	r.wantHeld(second, `allocation "a" is not accepted: spec.partition: there is no Partition "gone"`)
	// The pods of an allocation that is gone are of none.
	r.gone("a")
	r.computes("odd", "second", "third")
}

// Pods that were let in, and refused because their Partition was gone when it was their turn, are put into the queue when it is back.
func TestPartitionsGoneAndBack(t *testing.T) {
	for _, computed := range []bool{true, false} {
		r := newRig(t)
		r.allocation("a")
		waits := r.pod("waits", "a")
		r.admit(waits)
		r.computes("waits")
		handler(r.Tenants, r.partitions, allocations.DecodePartition).Gone("p")
		if r.take(waits) {
			t.Error("it is tried, and its Partition is gone")
		}
		if computed {
			r.computes()
		}
		r.seen(&placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
		r.computes("waits")
	}
}

// A group of pods is let in as a whole with its first pod, also if the others are beyond the window or of another partition.
func TestGroupsAreLetInAsAWhole(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	inGroup := func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")} }
	r.pod("first", "a", inGroup)
	r.admit(r.podsOf("a", 2*windowSize)...)
	last := r.pod("last", "a", inGroup)
	r.Compute()
	r.wantHeld(last, "")
}

// Pods that another plugin holds keep nobody out for long, though nothing else changes.
func TestHeldByAnotherPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.allocation("a")
		r.admit(r.podsOf("a", windowSize)...)
		last := r.pod("last", "a")
		r.admit(last)
		ctx, cancel := context.WithCancel(t.Context())
		go r.run(ctx, nil)
		time.Sleep(untriedTimeout / 2)
		synctest.Wait()
		r.wantHeld(last, "it waits until those before it have been tried")
		time.Sleep(untriedTimeout)
		synctest.Wait()
		r.wantHeld(last, "")
		cancel()
	})
}

// Pods with scheduling gates want nothing yet: they are in no order, keep nobody out of the window, and are let in when the gates are gone.
func TestGatedPodsAreInNoOrder(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	gated := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} }
	var all []*corev1.Pod
	for i := range windowSize + 1 {
		all = append(all, r.pod(fmt.Sprint("gated-", i), "a", gated))
		_ = r.Admit(all[i])
	}
	open := r.pod("open", "a")
	r.admit(open)
	r.computes("open")
	r.wantHeld(all[0], `the pod has the scheduling gate "example.com/later"`)
	ungated := all[0].DeepCopy()
	ungated.Spec.SchedulingGates = nil
	must(r.t, r.pods.Update(ungated))
	r.wantHeld(ungated, "")
}

// Everybody is let in at some time, whatever comes and goes, and nobody twice without having been tried.
func TestPropertyEverybodyIsLetIn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		teams := []string{"a", "b", "none"}
		r.allocation("a", reserving(5))
		r.allocation("b")
		waiting := map[string]*corev1.Pod{}
		in := map[string]bool{}
		take := func() {
			for _, name := range r.woken {
				in[name] = true
			}
			r.woken = nil
			for name := range in {
				if p := waiting[name]; p != nil {
					r.take(p)
					delete(waiting, name)
				}
			}
		}
		for step := range rapid.IntRange(1, 6).Draw(rt, "steps") {
			for i := range rapid.IntRange(0, 200).Draw(rt, "pods") {
				p := r.pod(fmt.Sprint(step, "-", i), teams[(i+step)%len(teams)])
				waiting[p.Name] = p
				in[p.Name] = r.Admit(p) == nil
			}
			if rapid.Bool().Draw(rt, "computed") {
				r.Compute()
			}
			take()
		}
		for range 20 {
			r.Compute()
			take()
		}
		for name := range waiting {
			rt.Errorf("%s was never let in", name)
		}
	})
}

// A pod that was let in waits to be tried, as in the backoff of the queue, which does not ask again. If another one has become the last that its allocation
// may have meanwhile, it is not tried: it would be bound and evicted. It is put into the queue again when it may.
func TestNoPodBeyondTheMaximumIsTried(t *testing.T) {
	r := newRig(t)
	r.allocation("a", reserving(1), capped(100))
	low := r.pod("low", "a")
	r.admit(low)
	r.Compute()
	if !r.take(low) {
		t.Fatal("it is not tried alone")
	}
	high := r.pod("high", "a", func(p *corev1.Pod) { p.Annotations = map[string]string{"espalier.dev/allocation-priority": "50"} })
	r.bind(high, nil)
	r.Compute()
	r.woken = nil
	claims, _ := r.Claims()
	claim, _ := claims.Of(low)
	if err := r.Take(low, claims, claim.Allocation); !errors.As(err, &FullError{}) {
		t.Errorf("it is tried beside another one that is the last: %v", err)
	}
	r.computes()
	must(r.t, r.pods.Delete(high))
	r.podChanged(high, nil)
	r.computes("low")
	if !r.take(low) {
		t.Error("it is not tried when the other one is gone")
	}
}

// Pods that were let in and not tried, and must not be any more, keep nobody out, also those of a group of which the first may be tried.
func TestPodsBeyondTheMaximumKeepNobodyOut(t *testing.T) {
	for name, group := range map[string]*corev1.PodSchedulingGroup{"alone": nil, "in a group": {PodGroupName: new("g")}} {
		r := newRig(t)
		r.allocation("a", reserving(1000))
		r.allocation("b")
		for i := range windowSize {
			_ = r.Admit(r.pod(fmt.Sprintf("a-%04d", i), "a", func(p *corev1.Pod) { p.Spec.SchedulingGroup = group }))
		}
		others := r.podsOf("b", 2*windowSize)
		r.admit(others...)
		r.Compute()
		if slices.Contains(r.woken, "b-0000") {
			t.Fatalf("%s: the window is not full", name)
		}
		r.allocation("a", reserving(1), capped(100))
		r.Compute()
		for i, p := range others {
			if !slices.Contains(r.woken, p.Name) {
				t.Fatalf("%s: the other pods are let in but for the last %d", name, len(others)-i)
			}
			r.take(p)
		}
	}
}

// A pod may be tried that was in the queue still when its window had let it in no more. It counts as tried.
func TestTriedFromOutsideOfTheWindow(t *testing.T) {
	w := newWindow()
	w.tried("pod")
	if since, in := w.in["pod"]; !in || !since.IsZero() || w.untried != 0 {
		t.Errorf("it is in: %t, since %s, and %d are untried", in, since, w.untried)
	}
	if w.let("pod") {
		t.Error("it is let in as if it had not been tried")
	}
}

// The queue may ask about a pod that has just gone, or waits no more. It is not held: the order would be computed again and again for it.
func TestNobodyIsHeldWhoWaitsNoMore(t *testing.T) {
	for name, change := range map[string]func(r *rig, pod *corev1.Pod){
		"gone":        func(r *rig, pod *corev1.Pod) { must(r.t, r.pods.Delete(pod)) },
		"failed":      func(_ *rig, pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed },
		"terminating": func(_ *rig, pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(begin)) },
		"another one": func(_ *rig, pod *corev1.Pod) { pod.UID = "another" },
	} {
		r := newRig(t)
		r.allocation("a", reserving(1), capped(100)) // so that none is let in whose place is not known
		pod := r.pod("pod", "a")
		r.Compute()
		now := pod.DeepCopy()
		if change(r, now); name != "gone" {
			must(r.t, r.pods.Update(now))
		}
		r.podChanged(pod, nil)
		r.admit(pod)
		r.Compute()
		for len(r.changed) > 0 {
			<-r.changed
		}
		r.Compute()
		if len(r.changed) > 0 || len(r.held) > 0 {
			t.Errorf("%s: the order is to be computed again: %t, and %d are held", name, len(r.changed) > 0, len(r.held))
		}
	}
}
