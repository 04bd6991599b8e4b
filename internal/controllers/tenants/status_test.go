// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// tried is what the scheduler says of a pod that found no place.
func tried(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	}
}

func first(s *placementv1alpha1.AllocationSpec) { s.RankAdjustment = new(int32(10)) }

func TestStatuses(t *testing.T) {
	r := newRig(t, partition("p", "p"), node("n1", "p", "8"), node("n2", "p", "8"), node("other", "q", "64"), team("prod", "6", first), team("dev", "4"), team("idle", ""),
		pod("prod-1", "prod", "n1"), pod("prod-2", "prod", "n1"), pod("prod-3", "prod", "", tried("0/2 nodes are available")), pod("prod-4", "prod", ""),
		pod("dev-1", "dev", "n1"), pod("dev-2", "dev", "n2"), pod("dev-3", "dev", "n2"), pod("dev-4", "dev", "n2"),
		pod("gone", "dev", "n2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("theirs", "dev", "n2", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }))
	r.mustLook()
	// Beyond their reservations prod's fourth comes before dev's third: both begin at 0, and end at 2/(6+16) and 2/(4+16).
	for name, want := range map[string]string{
		"prod": "cpu 4, 66 %, runs 2, waits 2, within 3, at 1 to 6, beyond , next prod-3@3",
		"dev":  "cpu 8, 200 %, runs 4, waits 0, within 2, at 4 to 8, beyond dev-4@8 dev-3@7, next nobody",
		"idle": "cpu 0, - %, runs 0, waits 0, within 0, at - to -, beyond , next nobody",
	} {
		s := r.allocation(name)
		if got := say(s); got != want || s.ObservedGeneration != 2 {
			t.Errorf("%s: got  %s (of generation %d)\nwant %s", name, got, s.ObservedGeneration, want)
		}
		r.wantCondition(s.Conditions, placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid)
		r.wantCondition(s.Conditions, placementv1alpha1.ConditionConflicted, false, placementv1alpha1.ReasonNoConflict)
	}
	if got := r.allocation("prod").Next.Message; !strings.Contains(got, "position 3 of 8") || !strings.Contains(got, "0/2 nodes are available") {
		t.Errorf("why the next one waits: %s", got)
	}
	s := r.partition("p")
	if *s.Nodes != 2 || *s.RunningPods != 6 || *s.WaitingPods != 2 || brief(s.Capacity) != list("16") || brief(s.Reserved) != list("10") {
		t.Errorf("the partition has %+v", s)
	}
	for kind, reason := range map[string]string{
		placementv1alpha1.ConditionConflicted: placementv1alpha1.ReasonNoConflict, placementv1alpha1.ConditionOvercommitted: placementv1alpha1.ReasonWithinFraction,
	} {
		r.wantCondition(s.Conditions, kind, false, reason)
	}
	r.wantCondition(s.Conditions, placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid)

	written := r.patches
	r.mustLook()
	if r.patches != written || written != 4 {
		t.Errorf("statuses were written %d times, and %d times when nothing was new", written, r.patches-written)
	}
}

// More is reserved than may be: that is said, and nobody is stopped. The same holds where the nodes that carried it are gone.
func TestOvercommitted(t *testing.T) {
	r := newRig(t, partition("p", "p"), node("n1", "p", "8"), team("prod", "4"), team("dev", "3"), pod("dev-1", "dev", ""))
	r.mustLook()
	r.wantCondition(r.partition("p").Conditions, placementv1alpha1.ConditionOvercommitted, true, placementv1alpha1.ReasonBeyondFraction, "7 of 8 cpu", "75 %", "add nodes, or reserve less")
	r.wantCondition(r.allocation("prod").Conditions, placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid)
	if got := say(r.allocation("dev")); !strings.Contains(got, "within 1") {
		t.Errorf("dev has %s", got)
	}
}

func TestConflicts(t *testing.T) {
	both := func(s *placementv1alpha1.AllocationSpec) {
		s.Assignments[0].PodSelector = nil
	}
	r := newRig(t, partition("p", "p"), partition("later", "p"), node("n1", "p", "8"), team("prod", "4"), team("all", "3", both), pod("p1", "prod", "n1"), pod("d1", "dev", "n1"))
	r.mustLook()
	r.wantCondition(r.allocation("prod").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedPods, `"all" (1 pod)`, "the oldest one's", "change the assignments")
	r.wantCondition(r.allocation("all").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedPods, `"prod" (1 pod)`)
	r.wantCondition(r.partition("later").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedNodes, `"p" (1 node)`, "change a nodeSelector")
	if got := say(r.allocation("prod")) + say(r.allocation("all")); strings.Count(got, "runs 1") != 2 {
		t.Errorf("the pod that both claim is of: %s", got)
	}
	if got := r.pods(); got != "d1 p1" {
		t.Errorf("of the pods there are %s", got)
	}
}

// What cannot be accepted says why, has no numbers, and has none of its pods evicted. An allocation that lacks a resource of the others says
// that.
func TestNotAccepted(t *testing.T) {
	cycle := func(s *placementv1alpha1.AllocationSpec) {
		s.Partition, s.Parent = "", "cycle"
		s.MaxUtilizationPercent = new(int32(1))
	}
	r := newRig(t, partition("p", "p"), partition("bad", "not a value"), node("n1", "p", "8"), team("cycle", "1", cycle), team("prod", "4"),
		team("gpus", "", func(s *placementv1alpha1.AllocationSpec) {
			s.Reserved = corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}
		}),
		team("of-bad", "1", func(s *placementv1alpha1.AllocationSpec) { s.Partition = "bad" }),
		pod("c1", "cycle", "n1"), pod("c2", "cycle", ""))
	r.mustLook()
	s := r.allocation("cycle")
	r.wantCondition(s.Conditions, placementv1alpha1.ConditionAccepted, false, placementv1alpha1.ReasonParentCycle, "cycle, cycle", "its pods that run go on")
	if s.RunningPods != nil || s.FirstPosition != nil {
		t.Errorf("it has numbers: %s", say(s))
	}
	r.wantCondition(r.allocation("of-bad").Conditions, placementv1alpha1.ConditionAccepted, false, placementv1alpha1.ReasonPartitionMissing, `"bad" is not accepted`)
	bad := r.partition("bad")
	r.wantCondition(bad.Conditions, placementv1alpha1.ConditionAccepted, false, placementv1alpha1.ReasonInvalid, "spec.nodeSelector", "not a value")
	r.wantCondition(bad.Conditions, placementv1alpha1.ConditionOvercommitted, false, placementv1alpha1.ReasonNotAccepted)
	r.wantCondition(r.allocation("gpus").Conditions, placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid, "it reserves no cpu")
	if got := r.pods(); got != "c1 c2" {
		t.Errorf("of the pods there are %s", got)
	}
}

// One allocation reserves what no node has, which is a word that it has mistyped. It is told so, and all others have what they reserve.
func TestMistypedResource(t *testing.T) {
	typo := func(s *placementv1alpha1.AllocationSpec) {
		s.Reserved = corev1.ResourceList{"cpus": resource.MustParse("10")}
	}
	r := newRig(t, partition("p", "p"), node("n1", "p", "8"), team("prod", "4", capped), team("typo", "", typo, capped), pod("p1", "prod", "n1"), pod("t1", "typo", "n1"), pod("t2", "typo", "n1"))
	r.mustLook()
	for name, says := range map[string]string{
		"prod": "the allocation can be read",
		"typo": "no node of the partition has cpus, and to reserve it has no effect until one does: correct the name, or add such nodes; it reserves no cpu",
	} {
		r.wantCondition(r.allocation(name).Conditions, placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid, says)
	}
	if c := meta.FindStatusCondition(r.allocation("prod").Conditions, placementv1alpha1.ConditionAccepted); c.Message != "the allocation can be read" {
		t.Errorf("the one beside it is told %q", c.Message)
	}
	r.wantCondition(r.partition("p").Conditions, placementv1alpha1.ConditionOvercommitted, true, placementv1alpha1.ReasonBeyondFraction, "its allocations reserve cpus, which no node has")
	if got := say(r.allocation("prod")); !strings.Contains(got, "within 1") {
		t.Errorf("prod has %s", got)
	}
	if got := r.pods(); got != "p1 t1 t2" {
		t.Errorf("of the pods there are %s", got)
	}
	alone := newRig(t, partition("p", "p"), node("n1", "p", "8"), team("typo", "", typo, capped), team("none", ""))
	alone.mustLook()
	if c := meta.FindStatusCondition(alone.allocation("typo").Conditions, placementv1alpha1.ConditionAccepted); strings.Contains(c.Message, "others of the partition do") {
		t.Errorf("where nobody else reserves anything it is told %q", c.Message)
	}
}

// What somebody has written into a status that nobody can compute with is written anew.
func TestUnreadableStatus(t *testing.T) {
	status := map[string]any{"observedGeneration": int64(7)}
	for text, want := range map[string]int64{"1": 7, "1e-1000000": 0, "1e1000000": 0} {
		status["used"] = map[string]any{"cpu": text}
		if got := statusOf[placementv1alpha1.AllocationStatus](&unstructured.Unstructured{Object: map[string]any{"status": status}}); got.ObservedGeneration != want {
			t.Errorf("with %s it is %+v", text, got)
		}
	}
}

// An allocation that is deleted under its running pods: they go on, and are of none.
func TestDeletedUnderItsPods(t *testing.T) {
	r := newRig(t, partition("p", "p"), node("n1", "p", "8"), team("prod", "4"), team("dev", "2", capped), pod("d1", "dev", "n1"), pod("p1", "prod", "n1"))
	r.mustLook()
	if err := r.Client.Delete(t.Context(), &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}); err != nil {
		t.Fatal(err)
	}
	r.mustLook()
	if got := r.pods(); got != "d1 p1" {
		t.Errorf("of the pods there are %s", got)
	}
	if got := *r.partition("p").RunningPods; got != 1 {
		t.Errorf("%d pods are in the order, want those that are of an allocation", got)
	}
	if err := r.Client.DeleteAllOf(t.Context(), &placementv1alpha1.Partition{}); err != nil {
		t.Fatal(err)
	}
	r.mustLook()
	r.wantCondition(r.allocation("prod").Conditions, placementv1alpha1.ConditionAccepted, false, placementv1alpha1.ReasonPartitionMissing, `there is no Partition "p"`)
}

// If another allocation claims the pods of one that is deleted, as its condition says before, they are its own from then on, with its maximum.
// Made anew the one that was deleted is the younger.
func TestDeletedBesideARival(t *testing.T) {
	r := newRig(t, partition("p", "p"), node("n1", "p", "8"), team("dev", "2"), pod("d1", "dev", "n1"), pod("d2", "dev", "n1"),
		team("rival", "2", capped, func(s *placementv1alpha1.AllocationSpec) { s.Assignments[0].PodSelector = nil }))
	r.mustLook()
	r.wantCondition(r.allocation("rival").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedPods, `"dev" (2 pods)`)
	if got := r.pods(); got != "d1 d2" {
		t.Errorf("of the pods there are %s", got)
	}
	if err := r.Client.Delete(t.Context(), &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: "dev"}}); err != nil {
		t.Fatal(err)
	}
	r.mustLook()
	if err := r.Client.Create(t.Context(), team("dev", "2")(r)); err != nil {
		t.Fatal(err)
	}
	r.mustLook()
	if got := say(r.allocation("rival")); r.pods() != "d1" || !strings.Contains(got, "runs 1") {
		t.Errorf("of the pods there are %s, and the rival has %s", r.pods(), got)
	}
}
