// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// group is pods that are placed together.
type group struct {
	fwk.PodGroupInfo
	pods []*corev1.Pod
}

func (g group) GetUnscheduledPods() []*corev1.Pod { return g.pods }

// assignment is where a pod of a group is to be.
type assignment struct {
	pod   *corev1.Pod
	info  fwk.PodInfo
	node  string
	state fwk.CycleState
}

func (a assignment) GetPod() *corev1.Pod           { return a.pod }
func (a assignment) GetPodInfo() fwk.PodInfo       { return a.info }
func (a assignment) GetNodeName() string           { return a.node }
func (a assignment) GetCycleState() fwk.CycleState { return a.state }

// placeGroup places pods one after the other on the first node that they fit on, as the scheduler does, and takes them off again.
func (r *rig) placeGroup(pods []*corev1.Pod) (*fwk.PodGroupAssignments, *fwk.Status) {
	r.Helper()
	snapshot, found := r.f.MutableSnapshotSharedLister(), &fwk.PodGroupAssignments{}
	defer func() {
		for _, a := range found.ProposedAssignments {
			r.must(snapshot.RemovePod(r.logger(), a.GetPod(), a.GetNodeName()))
		}
	}()
	for _, pod := range pods {
		state := framework.NewCycleState()
		if _, status, _ := r.f.RunPreFilterPlugins(r.Context(), state, pod); !status.IsSuccess() {
			return nil, status
		}
		info, err := framework.NewPodInfo(pod)
		r.must(err)
		at := ""
		for _, n := range r.nodes {
			node, err := snapshot.NodeInfos().Get(n.Name)
			r.must(err)
			if at == "" && r.f.RunFilterPluginsWithNominatedPods(r.Context(), state, pod, node).IsSuccess() {
				at = n.Name
			}
		}
		if at == "" {
			return nil, fwk.NewStatus(fwk.Unschedulable)
		}
		r.must(snapshot.AddPod(info, at))
		found.ProposedAssignments = append(found.ProposedAssignments, assignment{pod, info, at, state})
	}
	return &fwk.PodGroupAssignments{ProposedAssignments: slices.Clone(found.ProposedAssignments)}, nil
}

// tryGroup has others make way for a group, which the scheduler places one pod after the other.
func (r *rig) tryGroup(pods ...*corev1.Pod) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	r.Helper()
	return r.pl.PodGroupPostFilter(r.Context(), nil, group{pods: pods}, func(context.Context) (*fwk.PodGroupAssignments, *fwk.Status) { return r.placeGroup(pods) })
}

// deleted are the pods that were deleted, by name.
func (r *rig) deleted() (all []string) {
	for _, a := range r.client.Actions() {
		if d, is := a.(clienttesting.DeleteAction); is && !asked(a) {
			all = append(all, d.GetName())
		}
	}
	slices.Sort(all)
	return all
}

// A group has pods make way that come after the last of it, or nobody.
func TestGroups(t *testing.T) {
	r := newTeams(t, 8)
	r.node("n1", 4)
	r.node("n2", 4)
	for i, at := range []string{"n1", "n1", "n2", "n2"} {
		r.pod(names("dev", 4)[i], "dev", 2, at)
	}
	g1, g2, none := r.pod("g1", "prod", 3, ""), r.pod("g2", "prod", 2, ""), r.pod("none", "none", 1, "")
	never := r.pod("never", "prod", 1, "", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = new(corev1.PreemptNever) })
	r.start()
	result, status := r.tryGroup(g1, g2)
	if !status.IsSuccess() || len(result.NominatingInfos) != 2 {
		t.Fatalf("got %+v, %v", result, status)
	}
	deleted := r.deleted()
	if len(deleted) != 3 || deleted[0] != "dev1" {
		t.Errorf("evicted are %q, want the last three", deleted)
	}
	if result.NominatingInfos[types.NamespacedName{Namespace: "ns", Name: "g1"}].NominatedNodeName == "" {
		t.Error("a pod of the group is nominated for no node")
	}
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		code fwk.Code
		part string
	}{
		"of no allocation": {[]*corev1.Pod{none}, fwk.Unschedulable, ""},
		"mixed":            {[]*corev1.Pod{g1, none}, fwk.UnschedulableAndUnresolvable, "pod ns/none of the group is of no allocation"},
		"never preempts":   {[]*corev1.Pod{g1, never}, fwk.UnschedulableAndUnresolvable, "the preemptionPolicy of pod ns/never of the group is Never"},
		"waits":            {[]*corev1.Pod{g1, g2}, fwk.Success, "it waits until those that made way on node"},
	} {
		if _, status := r.tryGroup(tc.pods...); status.Code() != tc.code || !strings.Contains(status.Message(), tc.part) {
			t.Errorf("%s: %v", name, status)
		}
	}
}

// A group that is tried again before its victims are gone keeps what it is nominated for, which the scheduler would take from it: others would have
// the room that was made.
func TestGroupsThatWaitKeepTheirPlace(t *testing.T) {
	r := newTeams(t, 8, 4)
	r.pod("dev", "dev", 4, "n")
	g1, g2 := r.pod("g1", "prod", 1, ""), r.pod("g2", "prod", 2, "")
	r.start()
	result, status := r.tryGroup(g1, g2)
	if !status.IsSuccess() || len(result.NominatingInfos) != 2 {
		t.Fatalf("got %+v, %v", result, status)
	}
	again, status := r.tryGroup(g1, g2)
	if !status.IsSuccess() || !maps.EqualFunc(again.NominatingInfos, result.NominatingInfos, func(a, b *fwk.NominatingInfo) bool { return *a == *b }) {
		t.Errorf("nominated are %+v, then %+v: %v", result, again, status)
	}
}

// As for a pod alone, victims on a node that takes no pods any more are not waited for, as they may terminate for ever: others make way elsewhere.
func TestGroupVictimsOfANodeThatDies(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"lives":           nil,
		"does not answer": func(n *corev1.Node) { n.Spec.Taints = unreachable },
		"is cordoned":     func(n *corev1.Node) { n.Spec.Unschedulable = true },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			node, nominated := r.victimBeside()
			g1, g2 := r.pod("g1", "prod", 2, "", nominated), r.pod("g2", "prod", 2, "")
			var want []string
			if change != nil {
				change(node)
				want = []string{"dev2"}
			}
			_, status := r.start().tryGroup(g1, g2)
			if got := r.deleted(); !slices.Equal(got, want) || (want == nil) != strings.Contains(status.Message(), "it waits until those that made way on node dies are gone, of which pod ns/victim is the first") {
				t.Errorf("evicted are %q: %v", got, status)
			}
		})
	}
}

// By an anti-affinity a pod on any node may be in the way of a group. One on a node that takes no pods any more stays, as for a pod alone.
func TestGroupsAndPodsOfDeadNodes(t *testing.T) {
	for _, taints := range [][]corev1.Taint{nil, unreachable} {
		r := newTeams(t, 4)
		r.node("node", 4, "zone=left").Spec.Taints = taints
		r.node("free", 4, "zone=left")
		r.pod("blocker", "dev", 1, "node", apart)
		one, like := r.pod("one", "prod", 2, "", apart), r.pod("like", "prod", 1, "")
		_, status := r.start().tryGroup(one, like)
		if got := r.deleted(); status.IsSuccess() != (taints == nil) || (len(got) == 0) != (taints != nil) {
			t.Errorf("with %v: evicted are %q: %v", taints, got, status)
		}
	}
}

// A group for which nobody can make way is tried again when others run after the last of it, and not otherwise.
func TestGroupsAreTriedAgain(t *testing.T) {
	r := newTeams(t, 8, 4)
	first, last := r.pod("first", "prod", 3, ""), r.pod("last", "prod", 2, "")
	r.start()
	r.woken = nil
	if _, status := r.tryGroup(first, last); !strings.Contains(status.Message(), "the group would not fit if all pods after it went: position 2 of 2") {
		t.Errorf("got %v", status)
	}
	r.again(first, last)
	if len(r.woken) > 0 {
		t.Errorf("it is tried again: %v", r.woken)
	}
	r.again(first, last, r.pod("dev", "dev", 2, "n"))
	if r.woken["last"] == nil {
		t.Errorf("it is not tried again: %v", r.woken)
	}
}

// The order that is computed while a group is tried is another one. The group is tried by the one that it has its place in.
func TestGroupsKeepTheirOrder(t *testing.T) {
	r := newTeams(t, 8, 4)
	r.pod("dev", "dev", 4, "n")
	pod := r.pod("pod", "prod", 3, "")
	r.start()
	order, _ := r.tenants.Order()
	r.tenants.Compute()
	at, _, _ := r.pl.groupPlace(order, []*corev1.Pod{pod})
	tail, err := r.pl.tail(r.pl.newWorld(t.Context(), order, at), at, []*corev1.Pod{pod}, func(string) bool { return true })
	if err != nil || len(tail) != 1 {
		t.Errorf("after it are %v, %v", tail, err)
	}
}

// Who has nobody make way for a group hears which of its pods are the cause, and what to do.
func TestGroupsThatHaveNobodyMakeWay(t *testing.T) {
	r := newRig(t).allocation("prod", 0)
	r.allocation("elsewhere", 0, func(s *placementv1alpha1.AllocationSpec) { s.Partition = "q" })
	prod, elsewhere, none := r.pod("prod", "prod", 1, ""), r.pod("elsewhere", "elsewhere", 1, ""), r.pod("none", "none", 1, "")
	r.start()
	late := r.pod("late", "prod", 1, "")
	for want, pods := range map[string][]*corev1.Pod{
		"pod ns/none of the group is of no allocation: have Allocations claim all pods of a group, or none":                                 {none, prod},
		`pods ns/prod and ns/elsewhere of the group are of the partitions "p" and "q": have Allocations of one partition claim all of them`: {prod, elsewhere},
		"the position of pod ns/late of the group is not known yet: wait, the group is tried again when it is":                              {prod, late},
	} {
		if _, status := r.tryGroup(pods...); status.Message() != "nobody makes way: "+want {
			t.Errorf("got %v, want %q", status, want)
		}
	}
}

// A budget with an empty selector is one of all pods of its namespace. kube-scheduler took it for one of none until 1.38.
func TestABudgetOfAllPods(t *testing.T) {
	r := newRig(t).allocation("prod", 2).allocation("dev", 0)
	r.node("n1", 2)
	r.node("n2", 2)
	r.pod("other", "dev", 2, "n1", ready, func(p *corev1.Pod) { p.Namespace = "far" })
	r.pod("kept", "dev", 2, "n2", ready) // which would go, as the last one
	r.budget("", 0)
	urgent := r.pod("urgent", "prod", 2, "", priority("100"))
	r.start().wantEvicted(urgent, "n1", "other")
}

// A budget that lets one pod go lets a second preemptor have no other one before its status tells of the first, unless another is ready meanwhile.
// A pod that is not ready takes nothing from it.
func TestBudgetsWhoseStatusIsOld(t *testing.T) {
	for name, tc := range map[string]struct {
		unready bool
		then    func(r *rig, dev2 *corev1.Pod) (pods []*corev1.Pod)
		want    string
	}{
		"nobody has seen it yet": {then: nil, want: "qa"},
		"it terminates": {then: func(r *rig, dev2 *corev1.Pod) []*corev1.Pod {
			dev2.DeletionTimestamp, dev2.Finalizers = new(metav1.Now()), []string{"x/y"}
			return r.pods
		}, want: "qa"},
		"it is gone": {then: func(r *rig, dev2 *corev1.Pod) []*corev1.Pod {
			return slices.DeleteFunc(r.pods, func(p *corev1.Pod) bool { return p == dev2 })
		}, want: "qa"},
		"another one is ready": {then: func(r *rig, _ *corev1.Pod) []*corev1.Pod {
			r.node("n4", 2)
			r.pod("dev3", "dev", 2, "n4", ready)
			return r.pods
		}, want: "dev3"},
		"it was not ready": {unready: true, then: nil, want: "dev1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).allocation("prod", 4).allocation("qa", 1).allocation("dev", 0)
			for _, node := range []string{"n1", "n2", "n3"} {
				r.node(node, 2)
			}
			r.pod("qa", "qa", 2, "n1", ready)
			r.pod("dev1", "dev", 2, "n2", ready)
			dev2 := r.pod("dev2", "dev", 2, "n3")
			if !tc.unready {
				ready(dev2)
			}
			r.budget("dev", 1)
			first, second := r.pod("first", "prod", 2, "", priority("100")), r.pod("second", "prod", 2, "", priority("100"))
			r.start().wantEvicted(first, "n3", "dev2")
			r.nominate(first, "n3")
			if tc.then != nil {
				r.again(tc.then(r, dev2)...)
			}
			on := map[string]string{"qa": "n1", "dev1": "n2", "dev3": "n4"}
			r.wantEvicted(second, on[tc.want], tc.want)
		})
	}
}
