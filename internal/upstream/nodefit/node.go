// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	corev1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// Node is a node and the pods that take room on it. It is not safe for concurrent use.
type Node struct {
	// info has what the pods take, but for those of changed.
	info *framework.NodeInfo
	pods map[types.UID]*corev1.Pod
	// changed are pods whose room is computed when somebody asks for some. To do so with each change was rejected: it takes longer than all else
	// that is done with one, and most changes leave the room as it is. Which ones do, kube-scheduler alone knows, and its next version otherwise.
	changed sets.Set[types.UID]
}

// New returns a node without pods of which nothing is known.
func New() *Node {
	return &Node{info: framework.NewNodeInfo(), pods: make(map[types.UID]*corev1.Pod), changed: sets.New[types.UID]()}
}

// Set says how the node is. Nil is that it is not known.
func (n *Node) Set(node *corev1.Node) {
	if node == nil {
		n.info.RemoveNode()
		return
	}
	n.info.SetNode(node)
}

// Add has a pod take room, in place of what the same pod took before.
func (n *Node) Add(pod *corev1.Pod) {
	n.Remove(pod.UID) // also from memory
	n.pods[pod.UID] = pod
	n.changed.Insert(pod.UID)
}

// count computes the room of pods that have changed.
func (n *Node) count() {
	for uid := range n.changed {
		// By framework.NewPodInfo it would have its affinity read as well, which is no concern of a kubelet.
		n.info.AddPodInfo(&framework.PodInfo{Pod: allocated(n.pods[uid])})
	}
	clear(n.changed)
}

// Remove has a pod take no room any more. It is false if it took none.
func (n *Node) Remove(uid types.UID) bool {
	pod, there := n.pods[uid]
	if !there {
		return false
	}
	delete(n.pods, uid)
	if n.changed.Has(uid) {
		n.changed.Delete(uid)
		return true
	}
	// The error is that there is no such pod.
	return n.info.RemovePod(klog.Background(), pod) == nil
}

// Pods are those that take room on it, in no order.
func (n *Node) Pods() []types.UID { return slices.Collect(maps.Keys(n.pods)) }

// Empty reports that nothing is known of the node, and no pod takes room on it.
func (n *Node) Empty() bool { return n.info.Node() == nil && len(n.pods) == 0 }

// Refuses returns why the node's kubelet would not take one more pod, nil if it would. Of a node that is not known nobody can say
// that it would not.
func (n *Node) Refuses(pod *corev1.Pod) (reasons []string) {
	if n.info.Node() == nil {
		return nil
	}
	n.count()
	// For a pod that the cluster depends on, a kubelet evicts others.
	if corev1helpers.PodPriority(pod) < scheduling.SystemCriticalPriority {
		for _, r := range noderesources.Fits(pod, n.info, nil, options()) {
			if !elsewhere(pod, r.ResourceName, n.info) {
				reasons = append(reasons, reason(r))
			}
		}
	}
	if p := n.takenPort(pod); p != "" {
		reasons = append(reasons, p)
	}
	return reasons
}

// options are those of kube-scheduler's filter, and of a kubelet.
func options() noderesources.ResourceRequestsOptions {
	enabled := utilfeature.DefaultFeatureGate.Enabled
	return noderesources.ResourceRequestsOptions{
		EnablePodLevelResources:           enabled(features.PodLevelResources),
		EnableDRAExtendedResource:         enabled(features.DRAExtendedResource),
		EnableDRANodeAllocatableResources: enabled(features.DRANodeAllocatableResources),
	}
}

// elsewhere reports that a resource is not the node's to give: it has none of its kind, as where devices of claims back it, or the
// pod has got its own by a claim.
func elsewhere(pod *corev1.Pod, name corev1.ResourceName, node *framework.NodeInfo) bool {
	if !corev1helper.IsExtendedResourceName(name) {
		return false
	}
	if _, has := node.Allocatable.ScalarResources[name]; !has {
		return true
	}
	claimed := pod.Status.ExtendedResourceClaimStatus
	return claimed != nil && slices.ContainsFunc(claimed.RequestMappings, func(m corev1.ContainerExtendedResourceRequest) bool {
		return m.ResourceName == string(name)
	})
}

// takenPort says which host port of a pod another pod has, "" for none.
func (n *Node) takenPort(pod *corev1.Pod) string {
	wanted := schedutil.GetHostPorts(pod)
	if len(wanted) == 0 {
		return ""
	}
	// The node's own set of ports was rejected: of two pods that have the same port, as after two schedulers, the first that goes
	// takes it out of the set.
	held := fwk.HostPortInfo{}
	for _, other := range n.pods {
		for _, p := range schedutil.GetHostPorts(other) {
			held.Add(p.HostIP, string(p.Protocol), p.HostPort)
		}
	}
	for _, p := range wanted {
		if held.CheckConflict(p.HostIP, string(p.Protocol), p.HostPort) {
			return fmt.Sprintf("another pod has host port %d/%s", p.HostPort, strings.ToLower(string(cmp.Or(p.Protocol, corev1.ProtocolTCP))))
		}
	}
	return ""
}

// reason is a resource that is short, for people.
func reason(r noderesources.InsufficientResource) string {
	if r.ResourceName == corev1.ResourcePods {
		return fmt.Sprintf("it may have %d pods, and has %d", r.Capacity, r.Used)
	}
	quantity := func(n int64) string {
		switch {
		case r.ResourceName == corev1.ResourceCPU:
			return resource.NewMilliQuantity(n, resource.DecimalSI).String()
		case r.ResourceName == corev1.ResourceMemory, r.ResourceName == corev1.ResourceEphemeralStorage, corev1helper.IsHugePageResourceName(r.ResourceName):
			return resource.NewQuantity(n, resource.BinarySI).String()
		}
		return resource.NewQuantity(n, resource.DecimalSI).String()
	}
	return fmt.Sprintf("of %s the pod requests %s, and %s of %s are free", r.ResourceName, quantity(r.Requested), quantity(max(r.Capacity-r.Used, 0)), quantity(r.Capacity))
}
