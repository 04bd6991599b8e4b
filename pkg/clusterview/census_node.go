// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"maps"
	"math"
	"slices"
	"weak"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// count is what stands on one node.
type count struct {
	id     int32 // in Census.cluster
	serial uint64
	at     int // in Census.order
	node   *corev1.Node
	// pods are those of the node in the order of its NodeInfo; counted are those
	// of them that count.
	pods    []podOf
	counted int64
	// lowest is the lowest priority of a pod on the node, the highest there is without any.
	lowest int32
}

// podOf is a pod as it was last identified. Whoever looks at the same object again
// knows who it is without asking: nobody alters a pod, a change is another object.
//
// The pointer is weak because a census may rest for long while the pods are replaced
// one by one, and would keep all the old ones in memory. An address that is used
// again is another pointer.
type podOf struct {
	pod      weak.Pointer[corev1.Pod]
	of       *revision // nil: it does not count
	priority int32
	// provisional: see Identity.
	provisional bool
}

// forget has pods identified anew at the next recount.
func (n *count) forget(those func(*podOf) bool) {
	for i := range n.pods {
		if those(&n.pods[i]) {
			n.pods[i].pod = weak.Pointer[corev1.Pod]{}
		}
	}
}

// recount brings what is known of a node up to date.
func (c *Census) recount(s *seen) {
	n, pods := s.count, s.info.GetPods()
	changed := s.stamp.Stale(s.info)
	s.stamp, s.again = StampOf(s.info), false
	// Without the room that append leaves: there are as many as pods in the cluster.
	n.pods = slices.Grow(n.pods, max(0, len(pods)-len(n.pods)))
	for i, info := range pods {
		pod := info.GetPod()
		switch {
		case i == len(n.pods):
			n.pods = append(n.pods, podOf{})
		case n.pods[i].pod.Value() == pod:
			continue
		}
		c.identify(n, &n.pods[i], pod)
	}
	for _, p := range n.pods[len(pods):] {
		c.drop(n, p.of)
	}
	clear(n.pods[len(pods):])
	n.pods = n.pods[:len(pods)]
	c.noteProvisional(n)
	c.noteLowest(n)
	if changed {
		c.tell(n, s.info)
	}
}

// tell has the nodes show a node as it is now.
func (c *Census) tell(n *count, info fwk.NodeInfo) {
	before := n.node
	n.node = info.Node()
	requested, allocatable := info.GetNonZeroRequested(), info.GetAllocatable()
	c.cluster.Set(n.node.Name, tree.Facts{
		Usage: placement.Usage{
			CPU:    placement.Amount{Requested: requested.GetMilliCPU(), Allocatable: allocatable.GetMilliCPU()},
			Memory: placement.Amount{Requested: requested.GetMemory(), Allocatable: allocatable.GetMemory()},
		},
		Pods: n.counted, Unready: Unready(n.node),
	})
	if before != nil && !maps.Equal(before.Labels, n.node.Labels) {
		c.cluster.Relabel()
	}
}

// identify finds out who a pod is that is in the place of another one, or of none. If it
// is of the same revision as before, as when it is only asked again, nothing has changed.
func (c *Census) identify(n *count, p *podOf, pod *corev1.Pod) {
	before := p.of
	*p = podOf{pod: weak.Make(pod), priority: corev1helpers.PodPriority(pod)}
	if Counts(pod) {
		id := c.identifier.Identify(pod)
		p.provisional = id.Provisional
		if before != nil && before.is(id) {
			p.of = before
			return
		}
		c.serial++
		p.of = c.workloads.join(n, id, c.serial)
		n.counted++
	}
	c.drop(n, before)
}

// drop takes back what identify has counted.
func (c *Census) drop(n *count, of *revision) {
	if of != nil {
		n.counted--
		c.serial++
		c.workloads.leave(n, of, c.serial)
	}
}

func (c *Census) noteProvisional(n *count) {
	if slices.ContainsFunc(n.pods, func(p podOf) bool { return p.provisional }) {
		c.provisional[n] = true
	} else {
		delete(c.provisional, n)
	}
}

func (c *Census) noteLowest(n *count) {
	lowest := int32(math.MaxInt32)
	for i := range n.pods {
		lowest = min(lowest, n.pods[i].priority)
	}
	if lowest == n.lowest {
		return
	}
	c.forgetLowest(n)
	c.lowest[lowest]++
	n.lowest = lowest
}

func (c *Census) forgetLowest(n *count) {
	if c.lowest[n.lowest]--; c.lowest[n.lowest] <= 0 {
		delete(c.lowest, n.lowest)
	}
}
