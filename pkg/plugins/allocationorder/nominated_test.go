// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A pod that is nominated for a node keeps nobody off who comes before it. Nobody goes for the one that comes before: it has the nomination, and the other
// one is tried again.
func TestLaterNominationIsTaken(t *testing.T) {
	for name, priority := range map[string]int32{"of the same PriorityClass": 0, "of a higher PriorityClass": 1000} {
		r := newRig(t).allocation("prod", 4).allocation("qa", 2).allocation("dev", 0)
		r.node("empty", 4)
		r.node("full", 4)
		later := r.pod("later", "dev", 4, "", func(p *corev1.Pod) { p.Spec.Priority = new(priority) })
		r.pod("q", "qa", 4, "full")
		before := r.pod("before", "prod", 4, "")
		r.start()
		r.tenants.MadeWay(0, later, "empty", nil)
		r.nominate(later, "empty")

		r.wantEvicted(before, "empty")
		r.wantNominated(name, "empty", 0)
		r.queue.Delete(r.logger(), later)
		r.nominate(before, "empty")
		r.tenants.Compute()
		if r.woken["before"] == nil || r.woken["later"] == nil {
			t.Errorf("%s: only %v are tried again", name, r.woken)
		}
		if fits, _, status := r.try(before); !slices.Equal(fits, []string{"empty"}) {
			t.Errorf("%s: the one before fits on %q: %v", name, fits, status)
		}
		if fits, _, _ := r.try(later); len(fits) > 0 {
			t.Errorf("%s: the later one takes %q", name, fits)
		}
	}
}

// A pod that comes before stays where it is nominated, and so does one of another partition or of none.
func TestOtherNominationsStay(t *testing.T) {
	for name, team := range map[string]string{"before it": "prod", "of no allocation": "none"} {
		r := newTeams(t, 4, 4)
		other := r.pod("other", team, 4, "")
		pod := r.pod("pod", "dev", 4, "")
		r.start()
		r.nominate(other, "n")
		r.wantEvicted(pod, "")
		r.wantNominated(name, "n", 1)
	}
}

// Beside who goes, a later pod that is nominated for the node does not count either. If it fits beside the pod that comes before it keeps its
// nomination: who made way for it would have gone in vain.
func TestVictimsBesideALaterNomination(t *testing.T) {
	for name, tc := range map[string]struct{ reserved, victim, later, left int64 }{
		"it is taken": {reserved: 8, victim: 4, later: 4, left: 0},
		"it stays":    {reserved: 6, victim: 6, later: 2, left: 1},
	} {
		r := newTeams(t, tc.reserved, 8)
		r.pod("victim", "dev", tc.victim, "n")
		later := r.pod("later", "dev", tc.later, "")
		before := r.pod("before", "prod", tc.reserved, "")
		r.start()
		r.nominate(later, "n")
		r.wantEvicted(before, "n", "victim")
		r.wantNominated(name, "n", int(tc.left))
	}
}

// Whoever is still to leave for a pod whose place another one has got leaves in vain: the pod does not wait for that.
func TestNominationIsTakenForGood(t *testing.T) {
	r := newRig(t).allocation("prod", 4).allocation("qa", 2).allocation("dev", 0)
	r.node("n", 6)
	r.node("m", 4)
	leaves := r.pod("leaves", "dev", 2, "n", ends)
	r.pod("another", "dev", 4, "m")
	later := r.pod("later", "qa", 4, "")
	before := r.pod("before", "prod", 4, "")
	r.start()
	r.tenants.MadeWay(0, later, "n", []*corev1.Pod{leaves})
	r.nominate(later, "n")
	r.wantEvicted(before, "n")
	before.Spec.NodeName = "n"
	r.again(r.pods...)
	r.wantEvicted(later, "m", "another")
}

// Pods that leave the node are no reason for a nomination to be taken, where the one before has to wait all the same. When it need not any more it does not
// wait for those that leave for the later one.
func TestNominationBesideThoseThatLeaveStays(t *testing.T) {
	r := newTeams(t, 4, 8)
	leaves := r.pod("leaves", "dev", 4, "n", ends, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	})
	r.pod("victim", "dev", 4, "n")
	later := r.pod("later", "dev", 4, "")
	before := r.pod("before", "prod", 4, "")
	r.start()
	r.nominate(later, "n")
	r.wantEvicted(before, "n", "victim")
	r.wantNominated("it waits", "n", 1)
	r.again(leaves, later, before)
	r.wantEvicted(before, "n")
	r.wantNominated("it need not wait any more", "n", 0)
}

// A pod that leaves may be the one that another needs nearby. Without it no nomination could stay.
func TestNominationBesideOneThatIsNeededStays(t *testing.T) {
	r := newTeams(t, 4, 8)
	r.pod("leaves", "dev", 2, "n", ends, func(p *corev1.Pod) { p.Labels["app"] = "needed" })
	r.pod("victim", "dev", 4, "n")
	later := r.pod("later", "dev", 2, "")
	before := r.pod("before", "prod", 4, "", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "needed"}}, TopologyKey: corev1.LabelHostname,
		}}}}
	})
	r.start()
	r.nominate(later, "n")
	r.wantEvicted(before, "n", "victim")
	r.wantNominated("one is needed", "n", 1)
}

// A node that an extender has refused is not refused for a nomination: to take that would help nobody, again and again.
func TestNominationOnANodeThatAnExtenderRefuses(t *testing.T) {
	r := newTeams(t, 4, 8)
	later := r.pod("later", "dev", 4, "")
	before := r.pod("before", "prod", 4, "")
	r.start()
	r.nominate(later, "n")
	state := framework.NewCycleState()
	if _, status, _ := r.f.RunPreFilterPlugins(t.Context(), state, before); !status.IsSuccess() {
		t.Fatal(status)
	}
	statuses := framework.NewDefaultNodeToStatus()
	statuses.Set("n", fwk.NewStatus(fwk.Unschedulable, "an extender says so"))
	if result, status := r.pl.PostFilter(t.Context(), state, before, statuses); status.IsSuccess() {
		t.Errorf("it is nominated: %+v, %v", result, status)
	}
}

// Where a pod fits before those that leave have gone, it does not wait for them. The later one waits for them on.
func TestNominationIsTakenForNow(t *testing.T) {
	r := newTeams(t, 4, 8)
	leaves := r.pod("leaves", "dev", 4, "n", ends)
	later := r.pod("later", "dev", 4, "")
	before := r.pod("before", "prod", 4, "")
	r.start()
	r.tenants.MadeWay(0, later, "n", []*corev1.Pod{leaves})
	r.nominate(later, "n")
	r.wantEvicted(before, "n")
	r.wantNominated("it fits", "n", 0)
	if _, waits := r.tenants.WaitsFor(later); !waits {
		t.Error("the later one does not wait any more")
	}
}

// Of several nominations the last ones are taken, as few as it takes.
func TestFewNominationsAreTaken(t *testing.T) {
	for cpu, want := range map[int64]int{4: 1, 5: 0} {
		r := newTeams(t, cpu, 6)
		small := r.pod("small", "dev", 2, "")
		large := r.pod("large", "dev", 4, "")
		before := r.pod("before", "prod", cpu, "")
		r.start()
		r.nominate(large, "n")
		r.nominate(small, "n")
		r.wantEvicted(before, "n")
		if infos := r.queue.NominatedPodsForNode("n"); len(infos) != want || want > 0 && infos[0].GetPod().Name != "small" {
			t.Errorf("beside one of %d CPUs %d are nominated, want %d, the first ones", cpu, len(infos), want)
		}
	}
}

// The scheduler finds no node for a group where a later pod is nominated, so as many go as if that one ran.
func TestGroupBesideALaterNomination(t *testing.T) {
	r := newTeams(t, 8, 8)
	r.pod("victim", "dev", 4, "n")
	later := r.pod("later", "dev", 4, "")
	member := r.pod("member", "prod", 4, "")
	r.start()
	r.nominate(later, "n")
	result, status := r.tryGroup(member)
	if got := r.deleted(); !status.IsSuccess() || len(result.NominatingInfos) != 1 || !slices.Equal(got, []string{"victim"}) {
		t.Errorf("got %+v, %v, and evicted are %q", result, status, got)
	}
}

// The place of a pod is kept from others of a higher PriorityClass also where it is the last one that a node may have, or a host port.
func TestPlaceByNumberAndHostPort(t *testing.T) {
	port := func(n int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: n, ContainerPort: n}}
		}
	}
	high := func(p *corev1.Pod) { p.Spec.Priority = new(int32(1000)) }
	for name, tc := range map[string]struct {
		pods        string
		prod, again int32
		takes       bool
	}{
		"the last pod of a node": {"1", 1, 2, false},
		"the same host port":     {"100", 80, 80, false},
		"another host port":      {"100", 80, 81, true},
	} {
		r := newTeams(t, 4, 40)
		r.nodes[0].Status.Allocatable[corev1.ResourcePods] = resource.MustParse(tc.pods)
		prod := r.pod("prod", "prod", 3, "", port(tc.prod))
		again := r.pod("again", "dev", 2, "", high, port(tc.again))
		r.start()
		r.tenants.MadeWay(0, prod, "n", nil)
		r.nominate(prod, "n")
		if fits, _, status := r.try(again); (len(fits) > 0) != tc.takes {
			t.Errorf("%s: it fits on %q: %v", name, fits, status)
		}
		if fits, _, status := r.try(prod); len(fits) == 0 {
			t.Errorf("%s: the one that is nominated fits nowhere: %v", name, status)
		}
	}
}

// All profiles know who made way for whom in one of them. In another one nobody takes that place, and nobody turns out the pod that it was made
// for, though others run than then: until something else is wanted, or a pod that ran has gone and nobody evicted it.
func TestProfilesShareWhoMadeWay(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRig(t).allocation("a", 0).allocation("b", 0)
		r.node("n", 5)
		owned := ownedBy("apps/v1", "ReplicaSet")
		other := r.pod("other", "a", 2, "n")
		r.pod("victim", "a", 2, "n", owned)
		preemptor := r.pod("preemptor", "b", 3, "")
		r.start().wantEvicted(preemptor, "n", "victim")
		r.nominate(preemptor, "n")
		like := r.pod("like", "a", 2, "", owned, func(p *corev1.Pod) { p.Spec.Priority = new(int32(1000)) })
		r.again(other, like, preemptor)
		r.wantEvicted(like, "", "it would not fit if all pods after it went: position 3 of 3")
		placed := preemptor.DeepCopy()
		placed.Spec.NodeName = "n"
		now := []*corev1.Pod{like, r.pod("younger", "a", 2, ""), placed, r.pod("none", "none", 2, "n")}
		if !lost {
			r.must(r.tenants.Deleting(other.UID, func() error { return nil }))
			r.again(now...)
			r.wantEvicted(like, "", "it would not fit if all pods after it went: position 1 of 3")
			now = append(now, r.pod("more", "b", 1, ""))
		}
		r.again(now...)
		r.wantEvicted(like, "n", "preemptor")
	}
}
