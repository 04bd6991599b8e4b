// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/eviction"
)

// victim is a pod that may have to go.
type victim struct {
	info  fwk.PodInfo
	place allocations.Place
	node  string
	stays bool
}

// preemptor is a pod that others make way for. State is its cycle's, which is told of each pod that goes and comes back.
type preemptor struct {
	pod   *corev1.Pod
	info  fwk.PodInfo
	state fwk.CycleState
	// node is where a pod of a group is to be.
	node string
}

// world is the snapshot, in which pods are removed and put back. It is for between StartMutations and EndMutations.
type world struct {
	handle   fwk.Handle
	snapshot fwk.MutableSnapshotSharedLister
	// order is that of the preemptors' place, which is at. Another one may hold meanwhile, in which the place is none.
	order      *allocations.Order
	at         allocations.Place
	candidates []victim
	preemptors []preemptor
	request    [2]int64 // of the one preemptor: CPU and memory
	ctx        context.Context
	// taken are pods that are nominated for the preemptor's node, come later, and do not fit there beside it. Of these, takenForGood do not when the pods that
	// leave the node are gone, either.
	taken, takenForGood []*corev1.Pod
	// err is the first error. Nothing fits after that.
	err error
}

func (pl *AllocationOrder) newWorld(ctx context.Context, order *allocations.Order, at allocations.Place) *world {
	return &world{handle: pl.handle, snapshot: pl.handle.MutableSnapshotSharedLister(), order: order, at: at, ctx: ctx}
}

func (w *world) fail(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("trying out who makes way: %w", err)
	}
}

// Remove takes a pod off its node.
func (w *world) Remove(i int) {
	c := w.candidates[i]
	w.fail(w.snapshot.RemovePod(klog.FromContext(w.ctx), c.info.GetPod(), c.node))
	w.tell(c, w.handle.RunPreFilterExtensionRemovePod)
}

// Restore puts it back.
func (w *world) Restore(i int) {
	c := w.candidates[i]
	w.fail(w.snapshot.AddPod(c.info, c.node))
	w.tell(c, w.handle.RunPreFilterExtensionAddPod)
}

// tell tells the plugins of each preemptor that a pod has gone, or has come back.
func (w *world) tell(c victim, extension func(context.Context, fwk.CycleState, *corev1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status) {
	node, err := w.snapshot.NodeInfos().Get(c.node)
	if err != nil {
		w.fail(err)
		return
	}
	for _, p := range w.preemptors {
		w.fail(extension(w.ctx, p.state, p.pod, c.info, node).AsError())
	}
}

// Fits reports whether the one preemptor fits on a node now. Most often CPU or memory tells that it does not, at the thousandth
// of the cost.
func (w *world) Fits(name string) bool {
	node, err := w.snapshot.NodeInfos().Get(name)
	if err != nil {
		w.fail(err)
		return false
	}
	has, takes := node.GetAllocatable(), node.GetRequested()
	if w.err != nil || w.request[0] > 0 && w.request[0]+takes.GetMilliCPU() > has.GetMilliCPU() || w.request[1] > 0 && w.request[1]+takes.GetMemory() > has.GetMemory() {
		return false
	}
	return w.passes(w.filter(w.preemptors[0], node))
}

// passes reports whether the filters let a pod be on a node, by what they said.
func (w *world) passes(status *fwk.Status) bool {
	if !status.IsSuccess() && !status.IsRejected() {
		w.fail(status.AsError())
	}
	return status.IsSuccess()
}

// victimsOf are those of a plan.
func (w *world) victimsOf(plan eviction.Plan) []victim {
	all := make([]victim, len(plan.Victims))
	for i, v := range plan.Victims {
		all[i] = w.candidates[v]
	}
	return all
}

// requestOf is how much CPU and memory a pod requests.
func requestOf(pod *corev1.Pod) [2]int64 {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	return [2]int64{requests.Cpu().MilliValue(), requests.Memory().Value()}
}

// groupWorld is that of a group of pods, for which the scheduler finds nodes.
type groupWorld struct {
	*world
	schedule fwk.PodGroupSchedulingFunc
}

// Place has the scheduler look for a node for each pod of the group.
func (w *groupWorld) Place() bool {
	found, status := w.schedule(w.ctx)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			w.fail(status.AsError())
		}
		return false
	}
	var preemptors []preemptor
	for _, a := range found.ProposedAssignments {
		if a.GetNodeName() != "" {
			preemptors = append(preemptors, preemptor{a.GetPod(), a.GetPodInfo(), a.GetCycleState(), a.GetNodeName()})
		}
	}
	w.preemptors = preemptors
	return len(preemptors) > 0
}

// On reports whether a pod of the group is to be on a node.
func (w *groupWorld) On(node string) bool {
	return slices.ContainsFunc(w.preemptors, func(p preemptor) bool { return p.node == node })
}

// Fits reports whether each pod of the group still fits where it is to be, beside those before it.
func (w *groupWorld) Fits() bool {
	fits, added := w.err == nil, 0
	for _, p := range w.preemptors {
		node, err := w.snapshot.NodeInfos().Get(p.node)
		if err != nil {
			w.fail(err)
			fits = false
		}
		// All that are nominated count, as they do where Place looks. A victim without whom that finds nothing would be put back otherwise.
		if fits = fits && w.passes(w.handle.RunFilterPluginsWithNominatedPods(w.ctx, p.state, p.pod, node)); !fits {
			break
		}
		w.fail(w.snapshot.AddPod(p.info, p.node))
		added++
	}
	var err error
	for _, p := range w.preemptors[:added] {
		err = errors.Join(err, w.snapshot.RemovePod(klog.FromContext(w.ctx), p.pod, p.node))
	}
	w.fail(err)
	return fits
}
