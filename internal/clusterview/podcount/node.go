// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"maps"
	"math"
	"slices"
	"weak"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// count is what stands on one node.
type count struct {
	id     int32 // in Index.cluster
	serial uint64
	at     int // in Index.order
	node   *corev1.Node
	// pods are those of the node in the order of its NodeInfo; counted are those
	// of them that count.
	pods    []identified
	counted int64
	// lowest is the lowest priority of a pod on the node, the highest there is without any.
	lowest int32
}

// identified is a pod as it was last identified. The same object has the same identity: nobody
// alters a pod, a change is another object.
//
// The pointer is weak because an index may rest for long while the pods are replaced
// one by one, and would keep all the old ones in memory. An address that is used
// again is another pointer.
type identified struct {
	pod      weak.Pointer[corev1.Pod]
	of       *revision // nil: it does not count
	priority int32
	// provisional: see clusterview.Identity.
	provisional bool
	// labels are those of the pod; under is what it counts as under the selectors that select it.
	labels map[string]string
	under  []under
	// cost is the pod's deletion cost, "" for none.
	cost string
}

// invalidate has pods identified anew at the next recount, and reports whether there are any.
func (n *count) invalidate(those func(*identified) bool) (some bool) {
	for i := range n.pods {
		if those(&n.pods[i]) {
			n.pods[i].pod, some = weak.Pointer[corev1.Pod]{}, true
		}
	}
	return some
}

// recount brings what is known of a node up to date.
func (c *Index) recount(s *listed) {
	n, pods := s.count, s.info.GetPods()
	changed := s.stamp.Stale(s.info)
	s.stamp, s.invalidate = StampOf(s.info), false
	// Without the room that append leaves: there are as many as pods in the cluster.
	n.pods = slices.Grow(n.pods, max(0, len(pods)-len(n.pods)))
	for i, info := range pods {
		pod := info.GetPod()
		switch {
		case i == len(n.pods):
			n.pods = append(n.pods, identified{})
		case n.pods[i].pod.Value() == pod:
			continue
		}
		c.identify(n, &n.pods[i], pod)
	}
	for i := len(pods); i < len(n.pods); i++ {
		c.uncount(n, &n.pods[i])
	}
	clear(n.pods[len(pods):])
	n.pods = n.pods[:len(pods)]
	c.trackProvisional(n)
	c.trackLowest(n)
	if changed {
		c.setNode(n, s.info)
		c.affinities.set(n, s.info)
	}
}

// setNode has the nodes show a node as it is now.
func (c *Index) setNode(n *count, info fwk.NodeInfo) {
	before := n.node
	n.node = info.Node()
	requested, allocatable := info.GetNonZeroRequested(), info.GetAllocatable()
	c.cluster.Set(n.node.Name, tree.Facts{
		Usage: placement.Usage{
			CPU:    placement.Amount{Requested: requested.GetMilliCPU(), Allocatable: allocatable.GetMilliCPU()},
			Memory: placement.Amount{Requested: requested.GetMemory(), Allocatable: allocatable.GetMemory()},
		},
		Pods: n.counted, Unready: clusterview.Unready(n.node), Soft: clusterview.Soft(n.node), Ends: clusterview.EndHour(n.node),
	})
	if before != n.node {
		c.images.replace(before, n.node)
	}
	if before != nil && c.relabelled(before, n.node) {
		c.cluster.Relabel()
	}
}

// relabelled reports that a node has another value of a label that matters. Some agents
// write labels by the minute that no level names.
func (c *Index) relabelled(before, after *corev1.Node) bool {
	for label := range c.nodeLabels {
		was, had := before.Labels[label]
		if is, has := after.Labels[label]; is != was || has != had {
			return true
		}
	}
	return false
}

// identify finds out who a pod is that is in the place of another one, or of none. If it
// is of the same revision as before, as when it is only asked again, nothing has changed.
func (c *Index) identify(n *count, p *identified, pod *corev1.Pod) {
	before := *p
	*p = identified{pod: weak.Make(pod), priority: lowestPriority(pod)}
	if Counts(pod) {
		id := c.identifier.Identify(pod)
		p.provisional, p.labels, p.cost = id.Provisional, pod.Labels, pod.Annotations[corev1.PodDeletionCost]
		if before.of != nil && before.of.is(id) && maps.Equal(before.labels, p.labels) {
			p.of, p.under = before.of, before.under
			// What a pod is bound with is known already.
			if _, bound := pod.Annotations[clusterview.DeletionOrdinalAnnotation]; p.cost != before.cost && (before.cost != "" || !bound) {
				c.serial++
				p.of.workload.note(n, c.serial)
			}
			return
		}
		c.add(n, p, id)
	}
	c.uncount(n, &before)
}

// add counts a pod.
func (c *Index) add(n *count, p *identified, id clusterview.Identity) {
	c.serial++
	p.of = c.workloads.add(n, id, c.serial)
	n.counted++
	c.labels.add(p.of.workload, p.labels, +1)
	for _, is := range c.selections.of[id.Workload.Namespace] {
		c.countUnder(is, n, p)
	}
}

// lowestPriority is the priority below which preemption does not touch a pod. The group of a
// pod may have any, which preemption takes in place of the pod's.
func lowestPriority(pod *corev1.Pod) int32 {
	if pod.Spec.SchedulingGroup != nil {
		return math.MinInt32
	}
	return corev1helpers.PodPriority(pod)
}

// uncount takes back what identify has counted.
func (c *Index) uncount(n *count, p *identified) {
	if p.of == nil {
		return
	}
	n.counted--
	c.serial++
	c.labels.add(p.of.workload, p.labels, -1)
	c.uncountUnder(n, p, anySelection)
	c.workloads.remove(n, p.of, c.serial)
}

func (c *Index) trackProvisional(n *count) {
	if slices.ContainsFunc(n.pods, func(p identified) bool { return p.provisional }) {
		c.provisional[n] = true
	} else {
		delete(c.provisional, n)
	}
}

func (c *Index) trackLowest(n *count) {
	lowest := int32(math.MaxInt32)
	for i := range n.pods {
		lowest = min(lowest, n.pods[i].priority)
	}
	if lowest == n.lowest {
		return
	}
	c.untrackLowest(n)
	c.lowest[lowest]++
	n.lowest = lowest
}

func (c *Index) untrackLowest(n *count) {
	if c.lowest[n.lowest]--; c.lowest[n.lowest] <= 0 {
		delete(c.lowest, n.lowest)
	}
}
