// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
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
			if shareHostPort(pod, its) {
				return true
			}
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

// nomination is what a pod that waits for those that made way for it is nominated for. It has to be said each time that the pod is tried: of a pod alone the
// scheduler would go by its status, which may not show it yet, and from pods of a group that had room for themselves it would take it. One that is made in
// the place of those that made way would have their room, and others would have to go.
func (pl *AllocationOrder) nomination(pod *corev1.Pod) *fwk.NominatingInfo {
	its, known := pl.tenants.WaitsFor(pod)
	switch {
	case !known:
		return &fwk.NominatingInfo{NominatingMode: fwk.ModeNoop} // a former scheduler's, by its status
	case its.Displaced:
		return nominated("").NominatingInfo
	}
	return nominated(its.Nodes[0]).NominatingInfo
}

// nominatedForOthers reports whether a node was refused for that.
func (pl *AllocationOrder) nominatedForOthers(statuses fwk.NodeToStatusReader) (bool, error) {
	if !pl.tenants.Evicting() {
		return false, nil
	}
	nodes, err := statuses.NodesForStatusCode(pl.handle.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	return slices.ContainsFunc(nodes, func(n fwk.NodeInfo) bool { return statuses.Get(n.Node().Name).Plugin() == Name }), err
}

// nominatedAt are the pods that are nominated for a node: those that come after a place, and all others.
func nominatedAt(handle fwk.PodNominator, order *allocations.Order, at allocations.Place, node string) (others, later []fwk.PodInfo) {
	for _, info := range handle.NominatedPodsForNode(node) {
		if its, ok := order.Place(info.GetPod()); ok && its.Queue == at.Queue && its.Index > at.Index {
			later = append(later, info)
		} else {
			others = append(others, info)
		}
	}
	return others, later
}

// filter is RunFilterPluginsWithNominatedPods, but for pods that come later than the preemptors: they keep nobody off who comes before them. The framework
// goes by their PriorityClass, which most often is the same.
func (w *world) filter(p preemptor, node fwk.NodeInfo) *fwk.Status {
	others, later := nominatedAt(w.handle, w.order, w.at, node.Node().Name)
	if len(later) == 0 {
		return w.handle.RunFilterPluginsWithNominatedPods(w.ctx, p.state, p.pod, node)
	}
	if status := w.filterBeside(p, node, asHigh(others, p.pod), nil); !status.IsSuccess() {
		return status
	}
	return w.handle.RunFilterPlugins(w.ctx, p.state, p.pod, node) // a pod nearby may be what it needs, and may never come
}

// asHigh are those pods of which the framework has another one wait for the place.
func asHigh(pods []fwk.PodInfo, other *corev1.Pod) (all []fwk.PodInfo) {
	for _, info := range pods {
		if its := info.GetPod(); its.UID != other.UID && corev1helpers.PodPriority(its) >= corev1helpers.PodPriority(other) {
			all = append(all, info)
		}
	}
	return all
}

// filterBeside runs the filters as if some pods were on the node, and others were not.
func (w *world) filterBeside(p preemptor, node fwk.NodeInfo, there, gone []fwk.PodInfo) *fwk.Status {
	beside, state := node.Snapshot(), p.state.Clone()
	for _, info := range gone {
		if err := beside.RemovePod(klog.FromContext(w.ctx), info.GetPod()); err != nil {
			return fwk.AsStatus(err)
		}
		if status := w.handle.RunPreFilterExtensionRemovePod(w.ctx, state, p.pod, info, beside); !status.IsSuccess() {
			return status
		}
	}
	for _, info := range there {
		beside.AddPodInfo(info)
		if status := w.handle.RunPreFilterExtensionAddPod(w.ctx, state, p.pod, info, beside); !status.IsSuccess() {
			return status
		}
	}
	return w.handle.RunFilterPlugins(w.ctx, state, p.pod, beside)
}

// inWay are pods that are nominated for a node, come later, and do not fit there beside the preemptor: the last ones, as few as it takes. Gone are pods
// of the node that count no more.
func (w *world) inWay(name string, gone []fwk.PodInfo) (pods []*corev1.Pod) {
	node, err := w.snapshot.NodeInfos().Get(name)
	if err != nil {
		w.fail(err)
		return nil
	}
	p := w.preemptors[0]
	others, later := nominatedAt(w.handle, w.order, w.at, name)
	slices.SortFunc(later, func(a, b fwk.PodInfo) int { return w.index(a) - w.index(b) })
	stay := asHigh(others, p.pod)
	if len(later) > 0 && len(gone) > 0 && !w.passes(w.filterBeside(p, node, stay, gone)) {
		gone = nil // one of them is what it needs nearby
	}
	for n := len(later); n > 0 && !w.passes(w.filterBeside(p, node, slices.Concat(stay, later[:n]), gone)); n-- {
		pods = append(pods, later[n-1].GetPod())
	}
	return pods
}

// index is the place of a pod in the queue of the preemptors.
func (w *world) index(info fwk.PodInfo) int {
	place, _ := w.order.Place(info.GetPod())
	return place.Index
}

// nominatedForLater is an open node on which the preemptor fits, and is refused for pods alone that are nominated for it and come later. It is "" if there
// is none. Nobody has to go there, who would if the later ones took it.
func (w *world) nominatedForLater(open func(node string) bool) string {
	nodes, err := w.snapshot.NodeInfos().List()
	w.fail(err)
	for _, node := range nodes {
		name := node.Node().Name
		if !open(name) {
			continue
		}
		if _, later := nominatedAt(w.handle, w.order, w.at, name); len(later) > 0 && w.Fits(name) {
			return name
		}
	}
	return ""
}

// takeNominations takes from pods what they are nominated for, as there is no room for them beside one that comes before. Those that have no room when the
// pods that leave the node are gone, either, wait for nobody there any more.
func (pl *AllocationOrder) takeNominations(ctx context.Context, pods, forGood []*corev1.Pod) {
	for _, pod := range pods {
		pl.handle.DeleteNominatedPodIfExists(pod)
		if err := pl.denominate(ctx, pod); err != nil {
			// It is tried again all the same.
			klog.FromContext(ctx).Error(err, "Taking back a nomination", "pod", klog.KObj(pod))
		}
		if slices.ContainsFunc(forGood, func(p *corev1.Pod) bool { return p.UID == pod.UID }) {
			pl.tenants.NominationTaken(pod)
		} else {
			pl.tenants.Displace(pod)
		}
	}
}

// denominate writes that a pod is nominated for no node.
func (pl *AllocationOrder) denominate(ctx context.Context, pod *corev1.Pod) error {
	if cacher := pl.handle.APICacher(); cacher != nil {
		_, err := cacher.PatchPodStatus(pod, nil, nominated("").NominatingInfo)
		return err
	}
	patch := []byte(`{"status":{"nominatedNodeName":null}}`)
	if _, err := pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); !apierrors.IsNotFound(err) {
		return err //nolint:wrapcheck // the one caller says what for
	}
	return nil
}

// shareHostPort reports whether two pods cannot be on one node for a host port that both have.
func shareHostPort(pod, other *corev1.Pod) bool {
	held := clusterview.HostPorts(other)
	return slices.ContainsFunc(clusterview.HostPorts(pod), func(p hostport.Port) bool { return slices.ContainsFunc(held, p.Conflicts) })
}

// addTo adds what a pod requests, and the pod to their number.
func addTo(sum corev1.ResourceList, pod *corev1.Pod) {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	for name, more := range requests {
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
		case corev1.ResourcePods:
			free = int64(has.GetAllowedPodNumber()-len(node.GetPods())) - amount
		default:
			free = has.GetScalarResources()[name] - taken.GetScalarResources()[name] - amount
		}
		if free < 0 {
			return false
		}
	}
	return true
}
