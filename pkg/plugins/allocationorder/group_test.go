// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
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
			if at == "" && r.f.RunFilterPlugins(r.Context(), state, pod, node).IsSuccess() {
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
	r := newRig(t)
	r.allocation("prod", 8)
	r.allocation("dev", 0)
	r.node("n1", 4)
	r.node("n2", 4)
	for i, at := range []string{"n1", "n1", "n2", "n2"} {
		r.pod(names("dev", 4)[i], "dev", 2, at)
	}
	g1, g2, none := r.pod("g1", "prod", 3, ""), r.pod("g2", "prod", 2, ""), r.pod("none", "none", 1, "")
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
		"mixed":            {[]*corev1.Pod{g1, none}, fwk.UnschedulableAndUnresolvable, "it waits"},
	} {
		if _, status := r.tryGroup(tc.pods...); status.Code() != tc.code || !strings.Contains(status.Message(), tc.part) {
			t.Errorf("%s: %v", name, status)
		}
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
