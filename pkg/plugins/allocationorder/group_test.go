// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
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
