// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Changes says which nodes of the scheduler's snapshots are not what they were in an
// earlier one.
type Changes interface {
	// Since returns the nodes that may have changed between the snapshot at a position
	// and the last one, some more than once, and the position of that one. It is false
	// if it cannot tell: then all may have.
	Since(position uint64) (nodes []string, now uint64, known bool)
}

// Snapshot is the scheduler's view of all nodes in a cycle.
type Snapshot struct {
	Nodes []fwk.NodeInfo
	// Tentative: there may be pods on the nodes that the scheduler's cache knows nothing
	// of, as in the cycle of a pod group.
	Tentative bool
}

// view is which snapshot an index shows.
type view struct {
	changes  Changes
	position uint64
	// last is the snapshot itself. The scheduler makes another list for other nodes or
	// another order of them, and changes its nodes in place for all else.
	last Snapshot
	// invalidate are nodes to look at although nothing says that they have changed.
	invalidate []string
}

// since returns the nodes that may differ in a snapshot from the one before, or false if
// any may.
func (v *view) since(s Snapshot) (nodes []string, known bool) {
	if v.changes != nil {
		nodes, v.position, known = v.changes.Since(v.position)
	}
	known = known && !s.Tentative && !v.last.Tentative && sameList(s.Nodes, v.last.Nodes)
	nodes = append(nodes, v.invalidate...)
	v.invalidate, v.last = v.invalidate[:0], s
	return nodes, known
}

func sameList(a, b []fwk.NodeInfo) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// listed is a node as a snapshot had it. Snapshots keep their nodes, and the order of
// them, so that all a refresh reads of a node that has not changed is here, side by side.
type listed struct {
	info  fwk.NodeInfo
	stamp Stamp
	// invalidate: some of its pods are to be identified anew although it has not changed.
	invalidate bool
	count      *count
}

// Follow has an index look only at nodes that have changed, once it has seen them all.
func (c *Index) Follow(changes Changes) {
	c.view.changes, c.view.last = changes, Snapshot{Tentative: true}
}

// Refresh brings the index up to date with a snapshot.
func (c *Index) Refresh(s Snapshot) {
	c.invalidateOwned()
	if changed, known := c.view.since(s); known && c.refreshOnly(changed) {
		return
	}
	if len(s.Nodes) != len(c.order) || !c.refreshInOrder(s.Nodes) {
		c.reorder(s.Nodes)
	}
}

// refreshOnly looks at some of the nodes. It is false when it meets one that is not where
// it was. What it has done until then is right.
func (c *Index) refreshOnly(names []string) bool {
	for _, name := range names {
		n, known := c.nodes[name]
		if !known {
			return false
		}
		if !c.refreshNode(&c.order[n.at]) {
			return false
		}
	}
	return true
}

// refreshNode brings what is known of a node up to date, if it is still the same one.
func (c *Index) refreshNode(s *listed) bool {
	if !s.invalidate && !s.stamp.Stale(s.info) {
		return true
	}
	if node := s.info.Node(); node == nil || node.Name != c.cluster.Name(s.count.id) {
		return false
	}
	c.recount(s)
	return true
}

// refreshInOrder is false when it meets another node than the last snapshot had in
// this place. What it has done until then is right.
func (c *Index) refreshInOrder(snapshot []fwk.NodeInfo) bool {
	for i, info := range snapshot {
		if s := &c.order[i]; s.info != info || !c.refreshNode(s) {
			return false
		}
	}
	return true
}

// reorder refreshes from a snapshot whose nodes, or their order, are not those of the last one.
// Nodes that were in it keep their counts, unless they have changed; new ones are counted; those
// that are gone are removed.
func (c *Index) reorder(snapshot []fwk.NodeInfo) {
	before := c.order
	c.order = make([]listed, 0, len(snapshot))
	for _, info := range snapshot {
		node := info.Node()
		if node == nil {
			continue // a node that is gone, while some of its pods are not
		}
		s := listed{info: info, stamp: unstamped}
		if n, known := c.nodes[node.Name]; known {
			s.stamp, s.invalidate, s.count = before[n.at].stamp, before[n.at].invalidate, n
		} else {
			s.count = c.addNode(info)
		}
		s.count.at = len(c.order)
		c.order = append(c.order, s)
		if s.invalidate || s.stamp.Stale(info) {
			c.recount(&c.order[s.count.at])
		}
	}
	if len(c.order) < len(c.nodes) {
		c.removeAbsent(before)
	}
}

// RefreshFor brings the index up to date, and returns a pod's identity as the index
// has it. When the pod's ReplicaSet becomes known or is adopted in the middle of this, one of the
// two has still taken the ReplicaSet or its former owner for the workload, and none of its pods would
// seem to be there.
func (c *Index) RefreshFor(pod *corev1.Pod, snapshot Snapshot) clusterview.Identity {
	id := c.identifier.Identify(pod)
	for {
		c.Refresh(snapshot)
		after := c.identifier.Identify(pod)
		if after == id && c.identifier.Adopted.Now() == c.adopted {
			return id
		}
		id = after
		c.invalidateProvisional(func(p *identified) bool { return p.of.workload.key.Namespace == pod.Namespace })
	}
}

// addNode makes the entry of a node that is new.
func (c *Index) addNode(info fwk.NodeInfo) *count {
	c.serial++
	n := &count{serial: c.serial, lowest: math.MaxInt32}
	c.lowest[n.lowest]++
	name := info.Node().Name
	n.id = c.cluster.Set(name, tree.Facts{})
	for int(n.id) >= len(c.byID) {
		c.byID = append(c.byID, nil)
	}
	c.byID[n.id], c.nodes[name] = n, n
	return n
}

// removeAbsent drops the nodes that were in the order before and are not in it now.
func (c *Index) removeAbsent(before []listed) {
	for _, s := range before {
		n := s.count
		if n.at < len(c.order) && c.order[n.at].count == n {
			continue
		}
		for i := range n.pods {
			c.uncount(n, &n.pods[i])
		}
		c.untrackLowest(n)
		c.affinities.set(n, nil)
		c.images.add(n.node, -1)
		delete(c.provisional, n)
		name := c.cluster.Name(n.id)
		delete(c.nodes, name)
		c.cluster.Remove(name)
		c.byID[n.id] = nil
	}
}

// invalidateOwned has the pods identified anew whose ReplicaSets may have other owners, and those whose ReplicaSets may be known now.
func (c *Index) invalidateOwned() {
	adopted, now, known := c.identifier.Adopted.Since(c.adopted)
	c.adopted = now
	if !known {
		adopted = slices.Collect(maps.Keys(c.workloads))
	}
	for _, namespace := range adopted {
		c.invalidateIn(namespace)
	}
	added, now, known := c.identifier.Added.Since(c.added)
	if c.added = now; len(added) > 0 || !known {
		c.invalidateProvisional(func(p *identified) bool { return !known || slices.Contains(added, p.of.workload.key.Namespace) })
	}
}

// invalidateIn has all pods of a namespace identified anew.
func (c *Index) invalidateIn(namespace string) {
	nodes := make(map[*count]bool)
	for _, w := range c.workloads[namespace] {
		for i := range w.onNodes {
			nodes[w.onNodes[i].node] = true
		}
	}
	for n := range nodes {
		c.invalidate(n, func(p *identified) bool { return p.of != nil && p.of.workload.key.Namespace == namespace })
	}
}

// invalidateProvisional has some of the pods identified anew whose ReplicaSet was not known.
func (c *Index) invalidateProvisional(those func(*identified) bool) {
	for n := range c.provisional {
		c.invalidate(n, func(p *identified) bool { return p.provisional && those(p) })
	}
}

// invalidate has some pods of a node identified anew at the next refresh. Unless this finds
// that they are of others, the node has not changed.
func (c *Index) invalidate(n *count, those func(*identified) bool) {
	if n.invalidate(those) {
		c.order[n.at].invalidate = true
		c.view.invalidate = append(c.view.invalidate, c.cluster.Name(n.id))
	}
}
