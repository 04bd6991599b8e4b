// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
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
		pod("theirs", "dev", "n2", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" })).mustLook()
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
	r := newRig(t, partition("p", "p"), node("n1", "p", "8"), team("prod", "4"), team("dev", "3"), pod("dev-1", "dev", "")).mustLook()
	r.wantCondition(r.partition("p").Conditions, placementv1alpha1.ConditionOvercommitted, true, placementv1alpha1.ReasonBeyondFraction, "7 of 8 cpu", "75 %", "add nodes, or reserve less")
	r.wantCondition(r.allocation("prod").Conditions, placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid)
	if got := say(r.allocation("dev")); !strings.Contains(got, "within 1") {
		t.Errorf("dev has %s", got)
	}
}

func TestConflicts(t *testing.T) {
	both := func(s *placementv1alpha1.AllocationSpec) { s.Assignments[0].PodSelector = nil }
	r := newRig(t, partition("p", "p"), partition("later", "p"), node("n1", "p", "8"), team("prod", "4"), team("all", "3", both), pod("p1", "prod", "n1"), pod("d1", "dev", "n1"))
	r.mustLook()
	r.wantCondition(r.allocation("prod").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedPods, `"all" (1 pod)`, "the oldest one's", "change the assignments")
	r.wantCondition(r.allocation("all").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedPods, `"prod" (1 pod)`)
	r.wantCondition(r.partition("later").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedNodes, `"p" (1 node)`, "change a nodeSelector")
	if got := say(r.allocation("prod")) + say(r.allocation("all")); strings.Count(got, "runs 1") != 2 {
		t.Errorf("the pod that both claim is of: %s", got)
	}
	r.wantPods("d1 p1")
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
		pod("c1", "cycle", "n1"), pod("c2", "cycle", "")).mustLook()
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
	r.wantPods("c1 c2")
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
	r.wantPods("p1 t1 t2")
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
	r.Delete(&placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: "dev"}})
	r.mustLook()
	r.wantPods("d1 p1")
	if got := *r.partition("p").RunningPods; got != 1 {
		t.Errorf("%d pods are in the order, want those that are of an allocation", got)
	}
	r.Delete(&placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	r.mustLook()
	r.wantCondition(r.allocation("prod").Conditions, placementv1alpha1.ConditionAccepted, false, placementv1alpha1.ReasonPartitionMissing, `there is no Partition "p"`)
}

// If another allocation claims the pods of one that is deleted, as its condition says before, they are its own from then on, with its maximum.
// Made anew the one that was deleted is the younger.
func TestDeletedBesideARival(t *testing.T) {
	r := newRig(t, partition("p", "p"), node("n1", "p", "8"), team("dev", "2"), pod("d1", "dev", "n1"), pod("d2", "dev", "n1"),
		team("rival", "2", capped, func(s *placementv1alpha1.AllocationSpec) { s.Assignments[0].PodSelector = nil })).mustLook()
	r.wantCondition(r.allocation("rival").Conditions, placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedPods, `"dev" (2 pods)`)
	r.wantPods("d1 d2")
	r.Delete(&placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: "dev"}})
	r.mustLook()
	r.Create(team("dev", "2")(r))
	r.mustLook()
	if got := say(r.allocation("rival")); r.pods() != "d1" || !strings.Contains(got, "runs 1") {
		t.Errorf("of the pods there are %s, and the rival has %s", r.pods(), got)
	}
}

// capped lets an allocation run what it reserves.
func capped(s *placementv1alpha1.AllocationSpec) { s.MaxUtilizationPercent = new(int32(100)) }

// TV11: what runs beyond the maximum is evicted, the last first. A pod that a budget holds is tried again.
func TestVector_TV11_RunningPodsBeyondTheMaximum(t *testing.T) {
	r := newRig(t, partition("p", "p"), node("n1", "p", "64"), team("prod", "4", capped), team("dev", "2"),
		pod("p1", "prod", "n1"), pod("p2", "prod", "n1"), pod("p3", "prod", "n1"), pod("p4", "prod", "n1"), pod("waits", "prod", ""), pod("d1", "dev", "n1"), pod("d2", "dev", "n1"))
	r.held = []string{"p4"}
	r.mustLook()
	r.wantPods("d1 d2 p1 p2 p4 waits")
	if got := strings.Join(r.Told(), "\n"); !strings.Contains(got, "maxUtilizationPercent") || !strings.Contains(got, "MustNotRun") || strings.Count(got, "\n") != 0 {
		t.Errorf("it says %q", got)
	}
	r.held = nil
	r.mustLook()
	r.wantPods("d1 d2 p1 p2 waits")
}

// A pod that waits has nobody evicted by the maximum, however much it matters and however long it waits: no node may take it. If it is beyond the
// maximum itself, those that run stay within the reservation.
func TestAPodThatFitsNowhere(t *testing.T) {
	for cpu, want := range map[string]string{
		"4": "within 1, at 1 to 3, beyond p2@3 p1@2, next never@1",
		"5": "within 2, at 1 to 3, beyond , next never@3",
	} {
		first := func(p *corev1.Pod) {
			p.Annotations[clusterview.AllocationPriorityAnnotation] = "100"
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		r := newRig(t, partition("p", "p"), node("n1", "p", "64"), team("prod", "4", capped), pod("p1", "prod", "n1"), pod("p2", "prod", "n1"), pod("never", "prod", "", first))
		r.mustLook()
		r.wantPods("never p1 p2")
		if got := say(r.allocation("prod")); !strings.HasSuffix(got, want) {
			t.Errorf("with %s CPUs the status says %s, want %s", cpu, got, want)
		}
	}
}

// TV23: a group that is made smaller loses those whose number it does not have any more, and one whose number another one has.
func TestVector_TV23_ShrinkingEvicts(t *testing.T) {
	group := func(s *placementv1alpha1.AllocationSpec) {
		s.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "g", Count: new(int32(2))}}
	}
	r := newRig(t, partition("p", "p"), node("n1", "p", "64"), team("a", "20", group),
		pod("zero", "a", "n1", identity(0)), pod("one", "a", "n1", identity(1)), pod("two", "a", "n1", identity(2)), pod("again", "a", "n1", identity(1)),
		pod("bare", "a", "n1", identity(-1)), pod("waits", "a", "", identity(7)))
	r.mustLook()
	r.wantPods("bare one waits zero")
	if got := strings.Join(r.Told(), "\n"); !strings.Contains(got, "identity 2") || !strings.Contains(got, `group "g"`) {
		t.Errorf("it says %q", got)
	}
}

// However many must not run, so many are evicted at a look.
func TestSoManyAtOnce(t *testing.T) {
	objects := []func(*rig) client.Object{partition("p", "p"), node("n1", "p", "64"), team("prod", "0", capped)}
	for i := range maxAtOnce + 5 {
		objects = append(objects, pod(fmt.Sprintf("p%02d", i), "prod", "n1"))
	}
	r := newRig(t, objects...).mustLook()
	r.wantPods("p00 p01 p02 p03 p04")
	r.mustLook()
	r.wantPods("")
}

// Pods that a budget holds keep nobody else: those before them are evicted at the next look, and they are tried again after that.
func TestHeldPodsKeepNobodyElse(t *testing.T) {
	objects := []func(*rig) client.Object{partition("p", "p"), node("n1", "p", "64"), team("prod", "0", capped), team("dev", "0", capped), pod("first", "prod", "n1")}
	for i := range maxAtOnce + 5 {
		objects = append(objects, pod(fmt.Sprintf("held%02d", i), "dev", "n1"))
	}
	r := newRig(t, objects...)
	for i := range maxAtOnce + 5 {
		r.held = append(r.held, fmt.Sprintf("held%02d", i))
	}
	r.mustLook()
	r.mustLook()
	if got := r.pods(); strings.Contains(got, "first") {
		t.Errorf("there are %s", got)
	}
	r.held = nil
	r.mustLook()
	r.mustLook()
	r.wantPods("")
}
