// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/eviction"
)

// PodGroupPostFilter is PostFilter for a group of pods. It has the place of the last of them in the order: nobody makes way for one of
// them who would not for all. Groups with pods of no allocation, or of several partitions, have nobody make way.
func (pl *AllocationOrder) PodGroupPostFilter(ctx context.Context, _ fwk.PodGroupCycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	pods := group.GetUnscheduledPods()
	order, _ := pl.tenants.Order()
	at, concerned, reason := pl.groupPlace(order, pods)
	switch {
	case !concerned:
		return nil, fwk.NewStatus(fwk.Unschedulable)
	case reason != "":
		return nil, refused("%s", reason)
	}
	if reason := pl.groupMustWait(pods); reason != "" {
		infos := make(map[types.NamespacedName]*fwk.NominatingInfo, len(pods))
		for _, pod := range pods {
			infos[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pl.nomination(pod)
		}
		return &fwk.PodGroupPostFilterResult{NominatingInfos: infos}, fwk.NewStatus(fwk.Success, reason)
	}
	w := &groupWorld{pl.newWorld(ctx, order, at), schedule}
	plan, err := pl.walkGroup(w, at, pods)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("plugin %s: %w", Name, err))
	case plan == nil:
		pl.tenants.FoundNoPlace(at, pods...)
		return nil, refused("the group would not fit if all pods after it went%s: %s", pl.whoStays(at.Partition.Name), at)
	}
	infos := make(map[types.NamespacedName]*fwk.NominatingInfo, len(w.preemptors))
	for _, p := range w.preemptors {
		infos[types.NamespacedName{Namespace: p.pod.Namespace, Name: p.pod.Name}] = &fwk.NominatingInfo{NominatedNodeName: p.node, NominatingMode: fwk.ModeOverride}
	}
	victims := w.victimsOf(*plan)
	if err := pl.evict(ctx, w.preemptors, at, victims); err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("plugin %s: %w", Name, err))
	}
	return &fwk.PodGroupPostFilterResult{NominatingInfos: infos}, fwk.NewStatus(fwk.Success, fmt.Sprintf("those after the group make way, %d of them: %s", len(victims), at))
}

// groupPlace is where the last of some pods is. They are concerned if any is of an allocation; the reason says why nobody makes way for them.
func (pl *AllocationOrder) groupPlace(order *allocations.Order, pods []*corev1.Pod) (at allocations.Place, concerned bool, reason string) {
	claims, _ := pl.tenants.Claims()
	var none *corev1.Pod // of no allocation
	for _, pod := range pods {
		if claim, known := claims.Of(pod); known && claim.Allocation == nil {
			none = pod
			continue
		}
		concerned = true
		place, ok := order.Place(pod)
		if !ok {
			pl.tenants.Retry(pod)
			return at, true, fmt.Sprintf("the position of pod %s/%s of the group is not known yet: wait, the group is tried again when it is", pod.Namespace, pod.Name)
		}
		if neverPreempts(pod) {
			return at, true, fmt.Sprintf("the preemptionPolicy of pod %s/%s of the group is Never", pod.Namespace, pod.Name)
		}
		if at.Queue != nil && place.Queue != at.Queue {
			last := at.Entry().Object
			return at, true, fmt.Sprintf("pods %s/%s and %s/%s of the group are of the partitions %q and %q: have Allocations of one partition claim all of them",
				last.Namespace, last.Name, pod.Namespace, pod.Name, at.Partition.Name, place.Partition.Name)
		}
		if at.Queue == nil || place.Index > at.Index {
			at = place
		}
	}
	if concerned && none != nil {
		return at, true, fmt.Sprintf("pod %s/%s of the group is of no allocation: have Allocations claim all pods of a group, or none", none.Namespace, none.Name)
	}
	return at, concerned, ""
}

// groupMustWait says why a group is to wait, by the first of its pods that is, "" if none is.
func (pl *AllocationOrder) groupMustWait(pods []*corev1.Pod) string {
	for _, pod := range pods {
		if why := pl.mustWait(pod, func(node string) bool { return pl.takesPods(pod, node) }); why != "" {
			return why
		}
	}
	return ""
}

// takesPods reports whether a node takes pods that tolerate what this one does. For a pod alone the filters have told; the scheduler does not
// say what they told of a group.
func (pl *AllocationOrder) takesPods(pod *corev1.Pod, name string) bool {
	node, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		return false // it is gone
	}
	return !clusterview.KeepsOff(node.Node(), pod)
}

// walkGroup is walk for a group. Nobody goes from a node that takes none of its pods.
func (pl *AllocationOrder) walkGroup(w *groupWorld, at allocations.Place, pods []*corev1.Pod) (plan *eviction.Plan, err error) {
	tail, err := pl.tail(w.world, at, pods, func(node string) bool {
		return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pl.takesPods(pod, node) })
	})
	if err != nil || len(tail) == 0 {
		return nil, err
	}
	allowed := pl.disruptions(w.world, tail)
	if err := w.snapshot.StartMutations(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.snapshot.EndMutations()) }()
	found, ok := eviction.WalkGroup(tail, allowed, w)
	if !ok || w.err != nil {
		return nil, w.err
	}
	return &found, nil
}
