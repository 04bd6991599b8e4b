// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// ErrReasonNominated is the reason of a node on which others have made way for a pod that comes before.
const ErrReasonNominated = "node(s) were nominated for a pod that comes before this one"

// takesPlace reports whether a pod would take, on a node, the place of pods that come before it and for which others have made way there. The
// framework sees to that for pods whose PriorityClass is as high as this one's. The order goes by none: without this, a pod of a high one
// took the place each time, and the next one made way in vain.
func (pl *AllocationOrder) takesPlace(pod *corev1.Pod, node fwk.NodeInfo) bool {
	if !pl.tenants.Evicting() {
		return false // as nearly always
	}
	order, _ := pl.tenants.Order()
	own, known := order.Place(pod)
	before := corev1.ResourceList{}
	for _, info := range pl.handle.NominatedPodsForNode(node.Node().Name) {
		its := info.GetPod()
		at, ok := order.Place(its)
		if ok && its.UID != pod.UID && (!known || at.Queue == own.Queue && at.Index < own.Index) && corev1helpers.PodPriority(its) < corev1helpers.PodPriority(pod) {
			addTo(before, its)
		}
	}
	if len(before) == 0 {
		return false
	}
	alone := corev1.ResourceList{}
	addTo(alone, pod)
	addTo(before, pod)
	return hasRoom(node, alone) && !hasRoom(node, before)
}

// nominatedForOthers reports whether a node was refused for that.
func (pl *AllocationOrder) nominatedForOthers(statuses fwk.NodeToStatusReader) (bool, error) {
	if !pl.tenants.Evicting() {
		return false, nil
	}
	nodes, err := statuses.NodesForStatusCode(pl.handle.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	return slices.ContainsFunc(nodes, func(n fwk.NodeInfo) bool { return statuses.Get(n.Node().Name).Plugin() == Name }), err
}

// addTo adds what a pod requests.
func addTo(sum corev1.ResourceList, pod *corev1.Pod) {
	for name, more := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		all := sum[name]
		all.Add(more)
		sum[name] = all
	}
}

// hasRoom reports whether a node has so much of each resource.
func hasRoom(node fwk.NodeInfo, wants corev1.ResourceList) bool {
	has, taken := node.GetAllocatable(), node.GetRequested()
	for name, want := range wants {
		var free int64
		switch amount := want.Value(); name {
		case corev1.ResourceCPU:
			free = has.GetMilliCPU() - taken.GetMilliCPU() - want.MilliValue()
		case corev1.ResourceMemory:
			free = has.GetMemory() - taken.GetMemory() - amount
		case corev1.ResourceEphemeralStorage:
			free = has.GetEphemeralStorage() - taken.GetEphemeralStorage() - amount
		default:
			free = has.GetScalarResources()[name] - taken.GetScalarResources()[name] - amount
		}
		if free < 0 {
			return false
		}
	}
	return true
}
