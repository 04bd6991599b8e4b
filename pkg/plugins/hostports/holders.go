// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

// holders knows which ports of each node are held, and looks at a node again only
// when it has changed: a pod is shown to thousands of nodes, with a hundred pods each.
//
// NodeInfo.GetUsedPorts was rejected: it is a set, from which a pod takes its ports
// when it goes, whoever else has them. That happens: two schedulers give one port to
// two pods, the kubelet turns the second away, and with it the port of the first is
// forgotten. From then on pod after pod is sent there and turned away.
type holders struct {
	mu    sync.RWMutex // guards nodes
	nodes map[string]held
}

// held is what is held of one node as of a stamp, which tells all its states apart,
// including those that preemption only imagines and those in the cycle of a pod group.
type held struct {
	stamp podcount.Stamp
	// byNode is what the node holds itself; malformed says that this cannot be read.
	byNode    hostport.Set
	malformed bool
	byPods    fwk.HostPortInfo
}

// of returns what is held of the node. It is never modified.
func (h *holders) of(node fwk.NodeInfo) held {
	name := node.Node().Name
	h.mu.RLock()
	known, ok := h.nodes[name]
	h.mu.RUnlock()
	if ok && !known.stamp.Stale(node) {
		return known
	}
	byNode, err := clusterview.ReservedHostPorts(node.Node())
	known = held{stamp: podcount.StampOf(node), byNode: byNode, malformed: err != nil, byPods: fwk.HostPortInfo{}}
	for _, p := range node.GetPods() {
		hold(known.byPods, p.GetPod())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes = map[string]held{}
	}
	h.nodes[name] = known
	return known
}

// prune forgets all when most of what is known must be of nodes that are gone.
func (h *holders) prune(nodes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.nodes) > 2*nodes {
		h.nodes = nil
	}
}

// hostPorts are the host ports of a pod, in order, each once.
func hostPorts(pod *corev1.Pod) []hostport.Port {
	ports := clusterview.HostPorts(pod)
	slices.SortFunc(ports, hostport.Port.Compare)
	return slices.Compact(ports)
}

// hold adds the ports of a pod.
func hold(info fwk.HostPortInfo, pod *corev1.Pod) {
	for _, port := range clusterview.HostPorts(pod) {
		info.Add(address(port), string(port.Protocol), int32(port.Number))
	}
}

// conflicts reports whether one of the ports is the same as the given one.
func conflicts(info fwk.HostPortInfo, p hostport.Port) bool {
	return info.CheckConflict(address(p), string(p.Protocol), int32(p.Number))
}

// address is an address as HostPortInfo, which compares texts, needs it.
func address(p hostport.Port) string {
	if !p.Address.IsValid() {
		return fwk.DefaultBindAllHostIP
	}
	return p.Address.String()
}
