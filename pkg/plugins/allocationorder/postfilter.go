// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/eviction"
)

// refused says that nobody makes way, and why. No other plugin is to have anybody make way: those that go by priority know no order.
func refused(format string, args ...any) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "nobody makes way: "+fmt.Sprintf(format, args...))
}

// PostFilter evicts the last pods in the order that have to go for a pod to fit, of those that come after it. Pods of no allocation are left
// to the next plugin.
func (pl *AllocationOrder) PostFilter(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if _, err := cycle.Read(stateKey); err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	order, version := pl.tenants.Order()
	at, ok := order.Place(pod)
	if !ok {
		pl.tenants.Retry(pod)
		return nil, refused("its position is not known yet")
	}
	open := func(node string) bool { return statuses.Get(node).Code() == fwk.Unschedulable }
	if neverPreempts(pod) {
		return nil, refused("its preemptionPolicy is Never")
	}
	if reason := pl.mustWait(pod, open); reason != "" {
		return &fwk.PostFilterResult{NominatingInfo: pl.nomination(pod)}, refused("%s", reason)
	}
	if taken, err := pl.nominatedForOthers(statuses); err != nil || taken {
		pl.tenants.Retry(pod) // what may come of the nomination has no event
	}
	if pl.version != version {
		pl.failed.Clear()
		pl.version = version
	}
	kind, demand := kindOf(pod), at.Entry().Pod.Demand
	if kind != "" && pl.failed.Hopeless(kind, demand, at.Index) {
		pl.tenants.FoundNoPlace(at, pod)
		return nil, refused("a pod like it has just found nobody: %s", at)
	}
	w := pl.newWorld(ctx, order, at)
	plan, victims, err := pl.walk(w, cycle, pod, open, statuses)
	switch {
	case err != nil:
		return nil, fwk.AsStatus(fmt.Errorf("plugin %s: %w", Name, err))
	case plan == nil:
		if kind != "" {
			pl.failed.Note(kind, demand, at.Index)
		}
		pl.tenants.FoundNoPlace(at, pod)
		// What was nominated before is no place any more.
		return nominated(""), refused("it would not fit if all pods after it went%s: %s", pl.whoStays(at.Partition.Name), at)
	}
	if err := pl.evict(ctx, []preemptor{{pod: pod, node: plan.Node}}, at, victims); err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("plugin %s: %w", Name, err))
	}
	pl.takeNominations(ctx, w.taken, w.takenForGood)
	if len(victims) == 0 {
		pl.tenants.Retry(pod) // nobody who goes has it tried again
	}
	return nominated(plan.Node), fwk.NewStatus(fwk.Success, fmt.Sprintf("those after it make way on node %s, %d of them: %s", plan.Node, len(victims), at))
}

func nominated(node string) *fwk.PostFilterResult {
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: node, NominatingMode: fwk.ModeOverride}}
}

// walk tries out who has to go. The plan is nil if nobody helps.
func (pl *AllocationOrder) walk(w *world, cycle fwk.CycleState, pod *corev1.Pod, open func(node string) bool, statuses fwk.NodeToStatusReader) (plan *eviction.Plan, victims []victim, err error) {
	w.preemptors = []preemptor{{pod: pod, state: cycle.Clone()}}
	w.request = requestOf(pod)
	// What an extender has refused names no plugin, and no nomination is the reason.
	byPlugin := func(node string) bool { return open(node) && statuses.Get(node).Plugin() != "" }
	if name := w.nominatedForLater(byPlugin); name != "" || w.err != nil {
		// It is to have its place now, and not when others have left.
		w.taken, w.takenForGood = w.inWay(name, nil), w.inWay(name, pl.leaving(w, name))
		return &eviction.Plan{Node: name}, nil, w.err
	}
	others, err := pl.others(statuses)
	if err != nil {
		return nil, nil, err
	}
	tail, err := pl.tail(w, w.at, []*corev1.Pod{pod}, open)
	if err != nil || len(tail) == 0 {
		return nil, nil, err
	}
	if len(others) > 0 {
		own, err := fwk.GetAffinityTerms(pod, fwk.GetPodAntiAffinityTerms(pod.Spec.Affinity))
		if err != nil {
			return nil, nil, fmt.Errorf("reading the anti-affinity of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		for i, c := range w.candidates {
			its := c.info.GetPod()
			// Limits of domains and claims of volumes are about pods of one namespace.
			tail[i].Far = its.Namespace == pod.Namespace || reaches(c.info.GetRequiredAntiAffinityTerms(), pod) || reaches(own, its)
		}
	}
	allowed := pl.disruptions(w, tail)
	if err := w.snapshot.StartMutations(); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, w.snapshot.EndMutations()) }()
	found, ok := eviction.Walk(tail, others, allowed, w)
	if !ok || w.err != nil {
		return nil, nil, w.err
	}
	w.taken = w.inWay(found.Node, pl.leaving(w, found.Node))
	w.takenForGood = w.taken
	return &found, w.victimsOf(found), w.err
}

// leaving are the pods of a node that terminate, or were deleted by now.
func (pl *AllocationOrder) leaving(w *world, node string) (pods []fwk.PodInfo) {
	info, err := w.snapshot.NodeInfos().Get(node)
	if err != nil {
		w.fail(err)
		return nil
	}
	for _, p := range info.GetPods() {
		if p.GetPod().DeletionTimestamp != nil || pl.tenants.WasDeleted(p.GetPod().UID) {
			pods = append(pods, p)
		}
	}
	return pods
}

// reaches reports whether an anti-affinity may be about a pod that is on another node. In which namespaces it is is not looked at.
func reaches(terms []fwk.AffinityTerm, pod *corev1.Pod) bool {
	return slices.ContainsFunc(terms, func(t fwk.AffinityTerm) bool {
		return t.TopologyKey != corev1.LabelHostname && t.Selector.Matches(labels.Set(pod.Labels))
	})
}

// tail are the running pods after a place, in their order. Nobody who goes from a node that is not open would help.
func (pl *AllocationOrder) tail(w *world, at allocations.Place, preemptors []*corev1.Pod, open func(node string) bool) ([]eviction.Pod, error) {
	nodes, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	maps.DeleteFunc(pl.unevictable, func(_ types.UID, one unevictable) bool { return time.Since(one.since) > maxUnevictable })
	for _, node := range nodes {
		stays := !open(node.Node().Name)
		for _, info := range node.GetPods() {
			place, ok := w.order.Place(info.GetPod())
			if !ok || place.Queue != at.Queue || place.Index <= at.Index || info.GetPod().DeletionTimestamp != nil {
				continue
			}
			_, refused := pl.unevictable[info.GetPod().UID]
			w.candidates = append(w.candidates, victim{info: info, place: place, node: node.Node().Name, stays: stays || refused})
		}
	}
	slices.SortFunc(w.candidates, func(a, b victim) int { return a.place.Index - b.place.Index })
	var tail []eviction.Pod
	for _, c := range w.candidates {
		pod := c.info.GetPod()
		of := eviction.Pod{Node: c.node, Stays: c.stays}
		for _, p := range preemptors {
			of.Stays = of.Stays || pl.tenants.HasMadeWay(at.Stamp, p, pod)
		}
		tail = append(tail, of)
	}
	return tail, nil
}

// nodeAlone are filters that look at one node and what is on it, so that a pod on another one is never in the way.
var nodeAlone = []string{"NodeResourcesFit", "HostPorts", "NodePorts"}

// others are nodes that some filter refused which may look further than at one node. Zones take turns among them, as in the snapshot.
func (pl *AllocationOrder) others(statuses fwk.NodeToStatusReader) (names []string, err error) {
	nodes, err := pl.handle.SnapshotSharedLister().NodeInfos().List() // NodesForStatusCode has them in the order of a map
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes {
		name := node.Node().Name
		status := statuses.Get(name)
		if status.Code() == fwk.Unschedulable && status.Plugin() != "" && !slices.Contains(nodeAlone, status.Plugin()) {
			names = append(names, name)
		}
	}
	return names, nil
}

// maxEvicting bounds how long pods are waited for that do not show that they are terminating.
const maxEvicting = 30 * time.Second

// neverPreempts reports whether a pod is to have nobody make way.
func neverPreempts(pod *corev1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
}

// mustWait says why a pod is to wait and not to evict others, "" if it need not: those that it evicted are not gone yet. On a node that is
// not open it waits for nobody: pods of a node that has died terminate for ever.
func (pl *AllocationOrder) mustWait(pod *corev1.Pod, open func(node string) bool) string {
	its, known := pl.tenants.WaitsFor(pod)
	if !known {
		its.Nodes = []string{pod.Status.NominatedNodeName} // for which a former scheduler had others make way, perhaps
	}
	for _, name := range its.Nodes {
		node, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
		if err != nil || !open(name) {
			continue
		}
		for _, info := range node.GetPods() {
			p := info.GetPod()
			leaves := p.DeletionTimestamp != nil
			if its.Pods[p.UID] && (leaves || time.Since(its.Since) < maxEvicting) || leaves && !known && preempted(p) {
				return fmt.Sprintf("it waits until those that made way on node %s are gone, of which pod %s/%s is the first: see what keeps it if it lasts", name, p.Namespace, p.Name)
			}
		}
	}
	return ""
}

// preempted reports whether a pod terminates because a scheduler has evicted it.
func preempted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
	})
}

// ofOneTemplate are the kinds of owners whose pods differ in nothing that decides where they may be, but for their volumes and claims. Others, of
// operators, may make pods of all sorts.
var ofOneTemplate = []schema.GroupKind{
	{Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "batch", Kind: "Job"}, {Kind: "ReplicationController"},
}

// kindOf says what decides where a pod may be besides its requests, "" if that is the pod's alone.
func kindOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !slices.Contains(ofOneTemplate, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()) {
		return ""
	}
	if len(pod.Spec.ResourceClaims) > 0 || slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	}) {
		return ""
	}
	// The namespace is part of it: anybody may write an owner of another one into a pod.
	return pod.Namespace + "/" + string(owner.UID) + "/" + pod.Labels["controller-revision-hash"]
}
