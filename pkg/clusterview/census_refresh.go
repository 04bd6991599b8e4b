// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
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

// view is which snapshot a census shows.
type view struct {
	changes  Changes
	position uint64
	// last is the snapshot itself. The scheduler makes another list for other nodes or
	// another order of them, and changes its nodes in place for all else.
	last Snapshot
	// doubted are nodes to look at although nothing says that they have changed.
	doubted []string
	// anew: all nodes have to be looked at.
	anew bool
}

// since returns the nodes that may differ in a snapshot from the one before, or false if
// any may.
func (v *view) since(s Snapshot) (nodes []string, known bool) {
	if v.changes != nil {
		nodes, v.position, known = v.changes.Since(v.position)
	}
	known = known && !v.anew && !s.Tentative && !v.last.Tentative && sameList(s.Nodes, v.last.Nodes)
	nodes = append(nodes, v.doubted...)
	v.doubted, v.anew, v.last = v.doubted[:0], false, s
	// A node that is doubted whenever it is looked at must not be looked at twice: twice
	// as often each time.
	slices.Sort(nodes)
	return slices.Compact(nodes), known
}

func sameList(a, b []fwk.NodeInfo) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// seen is a node as a snapshot had it. Snapshots keep their nodes, and the order of
// them, so that all a refresh reads of a node that has not changed is here, side by side.
type seen struct {
	info  fwk.NodeInfo
	stamp Stamp
	count *count
}

// Follow has a census look only at nodes that have changed, once it has seen them all.
func (c *Census) Follow(changes Changes) { c.view.changes, c.view.anew = changes, true }

// Refresh brings the census up to date with a snapshot.
func (c *Census) Refresh(s Snapshot) {
	if epoch := c.identifier.Epoch(); epoch != c.epoch {
		c.epoch = epoch
		c.forgetIdentities()
	}
	if changed, known := c.view.since(s); known && c.refreshOnly(changed) {
		return
	}
	if len(s.Nodes) != len(c.order) || !c.refreshInOrder(s.Nodes) {
		c.reorder(s.Nodes)
	}
}

// refreshOnly looks at some of the nodes. It is false when it meets one that is not where
// it was. What it has done until then is right.
func (c *Census) refreshOnly(names []string) bool {
	for _, name := range names {
		n, known := c.nodes[name]
		if !known {
			return false
		}
		if !c.look(&c.order[n.at]) {
			return false
		}
	}
	return true
}

// look brings what is known of a node up to date, if it is still the same one.
func (c *Census) look(s *seen) bool {
	if !s.stamp.Stale(s.info) {
		return true
	}
	if node := s.info.Node(); node == nil || node.Name != s.count.name {
		return false
	}
	c.recount(s)
	return true
}

// refreshInOrder is false when it meets another node than the last snapshot had in
// this place. What it has done until then is right.
func (c *Census) refreshInOrder(snapshot []fwk.NodeInfo) bool {
	for i, info := range snapshot {
		if s := &c.order[i]; s.info != info || !c.look(s) {
			return false
		}
	}
	return true
}

// reorder refreshes from a snapshot of other nodes than the last.
func (c *Census) reorder(snapshot []fwk.NodeInfo) {
	before := c.order
	c.order = make([]seen, 0, len(snapshot))
	for _, info := range snapshot {
		node := info.Node()
		if node == nil {
			continue // a node that is gone, while some of its pods are not
		}
		s := seen{info: info, stamp: unstamped}
		if n, known := c.nodes[node.Name]; known {
			s.stamp, s.count = before[n.at].stamp, n
		} else {
			s.count = c.admit(node.Name)
		}
		s.count.at = len(c.order)
		c.order = append(c.order, s)
		if s.stamp.Stale(info) {
			c.recount(&c.order[s.count.at])
		}
	}
	if len(c.order) < len(c.nodes) {
		c.forgetAbsent(before)
	}
}

// RefreshFor brings the census up to date, and returns a pod's identity as the census
// has it. When the pod's ReplicaSet becomes known in the middle of this, one of the
// two has still taken the ReplicaSet for the workload, and none of its pods would
// seem to be there.
func (c *Census) RefreshFor(pod *corev1.Pod, snapshot Snapshot) Identity {
	id := c.identifier.Identify(pod)
	for {
		c.Refresh(snapshot)
		after := c.identifier.Identify(pod)
		if after == id {
			return id
		}
		id = after
	}
}

// admit makes the entry of a node that is new.
func (c *Census) admit(name string) *count {
	c.serial++
	n := &count{name: name, serial: c.serial}
	c.nodes[name] = n
	return n
}

// forgetAbsent drops the nodes that were in the order before and are not in it now.
func (c *Census) forgetAbsent(before []seen) {
	c.version++
	c.departed = c.version
	for _, s := range before {
		n := s.count
		if n.at < len(c.order) && c.order[n.at].count == n {
			continue
		}
		for _, p := range n.pods {
			c.workloads.leave(n, p.of)
		}
		c.unlink(n)
		if n.alias {
			c.aliases--
		}
		delete(c.nodes, n.name)
	}
}

// forgetIdentities has all pods identified anew.
func (c *Census) forgetIdentities() {
	c.view.anew = true
	for i := range c.order {
		c.order[i].stamp = unstamped
		c.order[i].count.forget()
	}
}

// Doubt has a node told again by Each after the next Refresh although nothing says
// that it has changed: for who has altered what Each told, and cannot know whether a
// snapshot will say the same.
func (c *Census) Doubt(name string) {
	if n, ok := c.nodes[name]; ok {
		c.unstamp(&c.order[n.at])
	}
}

// unstamp has a node looked at, and told again, at the next refresh.
func (c *Census) unstamp(s *seen) {
	s.stamp = unstamped
	c.view.doubted = append(c.view.doubted, s.count.name)
}
