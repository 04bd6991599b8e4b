// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// count is what stands on one node.
type count struct {
	name    string
	serial  uint64
	at      int // in Census.order
	version uint64
	node    *corev1.Node
	// alias: the label of its host name is another than its name, or missing.
	alias bool
	// values are the node's through the lens of this serial.
	values []placement.Value
	lens   uint64
	// pods are those of the node in the order of its NodeInfo; counted are those
	// of them that count.
	pods    []podOf
	counted int64
	// newer and older chain all nodes by version, so that to tell what has changed
	// takes no walk over what has not.
	newer, older *count
}

// podOf is a pod as it was last identified. Whoever looks at the same object again
// knows who it is without asking: nobody alters a pod, a change is another object.
//
// The pointer is weak because a census may rest for long while the pods are replaced
// one by one, and would keep all the old ones in memory. An address that is used
// again is another pointer.
type podOf struct {
	pod weak.Pointer[corev1.Pod]
	of  *revision // nil: it does not count
}

// forget has every pod identified anew at the next recount.
func (n *count) forget() {
	for i := range n.pods {
		n.pods[i].pod = weak.Pointer[corev1.Pod]{}
	}
}

func (n *count) valuesThrough(l *lens, levels []level.Level) []placement.Value {
	if n.lens != l.serial {
		n.values, n.lens = Values(n.node, levels), l.serial
	}
	return n.values
}

// recount brings what is known of a node up to date.
func (c *Census) recount(s *seen) {
	n, pods := s.count, s.info.GetPods()
	if n.node != s.info.Node() {
		n.lens = 0
		c.name(n, s.info.Node())
	}
	s.stamp, n.node = StampOf(s.info), s.info.Node()
	c.version++
	c.unlink(n)
	n.version = c.version
	c.link(n)
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
		p, provisional := c.enrol(n, pod)
		c.drop(n, n.pods[i].of)
		n.pods[i] = p
		if provisional {
			// Worth asking again, even if nothing happens to the node.
			n.pods[i].pod = weak.Pointer[corev1.Pod]{}
			c.unstamp(s)
		}
	}
	for _, p := range n.pods[len(pods):] {
		c.drop(n, p.of)
	}
	clear(n.pods[len(pods):])
	n.pods = n.pods[:len(pods)]
}

// name counts the nodes that have another host name than their own.
func (c *Census) name(n *count, node *corev1.Node) {
	if n.alias {
		c.aliases--
	}
	if n.alias = node.Labels[corev1.LabelHostname] != node.Name; n.alias {
		c.aliases++
	}
}

// enrol counts a pod, if it counts, and reports whether it may turn out to be of
// another workload.
func (c *Census) enrol(n *count, pod *corev1.Pod) (p podOf, provisional bool) {
	p.pod = weak.Make(pod)
	if !Counts(pod) {
		return p, false
	}
	id := c.identifier.Identify(pod)
	p.of = c.workloads.join(n, id)
	n.counted++
	return p, id.Provisional
}

// drop takes back what enrol has counted.
func (c *Census) drop(n *count, of *revision) {
	if of != nil {
		n.counted--
		c.workloads.leave(n, of)
	}
}

// link makes a node the newest.
func (c *Census) link(n *count) {
	n.newer, n.older = nil, c.newest
	if c.newest != nil {
		c.newest.newer = n
	}
	c.newest = n
}

// unlink takes a node out of the chain, if it is in it.
func (c *Census) unlink(n *count) {
	switch {
	case n.newer != nil:
		n.newer.older = n.older
	case c.newest == n:
		c.newest = n.older
	}
	if n.older != nil {
		n.older.newer = n.newer
	}
	n.newer, n.older = nil, nil
}
