// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"iter"
	"maps"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Census counts the pods on every node by workload and revision. It is brought up
// to date from the scheduler's snapshot, recounting only the nodes that have
// changed, and serves all workloads.
//
// The snapshot holds assumed pods, so a pod is counted from the moment a node has
// been chosen for it.
//
// A Census is not safe for concurrent use.
type Census struct {
	identifier *Identifier
	nodes      map[string]*count
	// order is the same nodes as the last snapshot had them. Snapshots keep their
	// order, so that a node is found by its position and seldom by its name.
	order []*count
	// round numbers the snapshots.
	round uint64
	// version moves with every change; departed is the version of the last departure.
	version, departed uint64
	// epoch is the identifier's at the last Refresh.
	epoch uint64
}

// count is what stands on one node.
type count struct {
	name      string
	stamp     Stamp
	version   uint64
	round     uint64 // of the last snapshot that had the node
	node      *corev1.Node
	pods      int64
	workloads map[Workload][]revisionCount
	// provisional: some pod's identity was, so it is worth asking again.
	provisional bool
}

type revisionCount struct {
	owner, revision string
	pods            int64
}

// NewCensus returns an empty census.
func NewCensus(identifier *Identifier) *Census {
	return &Census{identifier: identifier, nodes: make(map[string]*count)}
}

// Version identifies the state of the census: Each reports what came after one.
func (c *Census) Version() uint64 { return c.version }

// Refresh brings the census up to date with a snapshot of all nodes.
func (c *Census) Refresh(snapshot []fwk.NodeInfo) {
	c.round++
	epoch := c.identifier.Epoch()
	allAnew := epoch != c.epoch
	c.epoch = epoch
	before, now := c.order, c.order[:0]
	for _, info := range snapshot {
		node := info.Node()
		if node == nil {
			continue // a node that is gone, while some of its pods are not
		}
		var n *count
		if at := len(now); at < len(before) && before[at].name == node.Name {
			n = before[at]
		} else {
			n = c.count(node.Name)
		}
		n.round = c.round
		if allAnew || n.stale(info) {
			c.version++
			n.version = c.version
			n.recount(info, c.identifier)
		}
		now = append(now, n)
	}
	if len(now) < len(before) {
		clear(before[len(now):])
	}
	c.order = now
	if len(c.order) < len(c.nodes) {
		c.forgetAbsent()
	}
}

// RefreshFor brings the census up to date, and returns a pod's identity as the census
// has it. When the pod's ReplicaSet becomes known in the middle of this, one of the
// two has still taken the ReplicaSet for the workload, and none of its pods would
// seem to be there.
func (c *Census) RefreshFor(pod *corev1.Pod, snapshot []fwk.NodeInfo) Identity {
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

// stale reports that a node may not be as it was counted.
func (n *count) stale(info fwk.NodeInfo) bool { return n.provisional || n.stamp.Stale(info) }

// count returns what is known of a node, which is nothing if it is new.
func (c *Census) count(name string) *count {
	n, known := c.nodes[name]
	if !known {
		n = &count{name: name, stamp: unstamped}
		c.nodes[name] = n
	}
	return n
}

// forgetAbsent drops the nodes that are not in the last snapshot.
func (c *Census) forgetAbsent() {
	c.version++
	c.departed = c.version
	maps.DeleteFunc(c.nodes, func(_ string, n *count) bool { return n.round != c.round })
}

// Doubt has a node counted anew at the next Refresh although nothing says that it
// has changed: for who has altered what Each told, and cannot know whether a
// snapshot will say the same.
func (c *Census) Doubt(name string) {
	if n, ok := c.nodes[name]; ok {
		n.stamp = unstamped
	}
}

// Each calls changed for every node that has changed since a version of the
// census, as levels, workload and revision see it. It returns whether nodes have
// departed since; ask Has for which.
func (c *Census) Each(since uint64, of Identity, levels []level.Level, changed func(placement.Node)) (departures bool) {
	for _, n := range c.order {
		if n.version <= since {
			continue
		}
		changed(placement.Node{
			Name:    n.name,
			Values:  Values(n.node, levels),
			Tally:   n.tally(of),
			Unready: Unready(n.node),
		})
	}
	return c.departed > since
}

// Revision returns the nodes on which pods of a revision count, with their number.
// Cordoned nodes and nodes that are not ready are among them: what stands there may
// still run.
func (c *Census) Revision(of Identity) iter.Seq2[*corev1.Node, int64] {
	return func(yield func(*corev1.Node, int64) bool) {
		for _, n := range c.order {
			if pods := n.tally(of).Revision; pods > 0 && !yield(n.node, pods) {
				return
			}
		}
	}
}

// Has reports whether the census knows a node.
func (c *Census) Has(name string) bool {
	_, ok := c.nodes[name]
	return ok
}

func (n *count) recount(info fwk.NodeInfo, identifier *Identifier) {
	*n = count{
		name:      n.name,
		stamp:     StampOf(info),
		version:   n.version,
		round:     n.round,
		node:      info.Node(),
		workloads: make(map[Workload][]revisionCount, len(n.workloads)),
	}
	for _, p := range info.GetPods() {
		if pod := p.GetPod(); Counts(pod) {
			id := identifier.Identify(pod)
			n.pods++
			n.provisional = n.provisional || id.Provisional
			n.add(id)
		}
	}
}

func (n *count) add(id Identity) {
	revisions := n.workloads[id.Workload]
	for i := range revisions {
		if r := &revisions[i]; r.owner == id.Owner && r.revision == id.Revision {
			r.pods++
			return
		}
	}
	n.workloads[id.Workload] = append(revisions, revisionCount{id.Owner, id.Revision, 1})
}

func (n *count) tally(of Identity) placement.Tally {
	t := placement.Tally{All: n.pods}
	for _, r := range n.workloads[of.Workload] {
		t.Workload += r.pods
		if r.owner != of.Owner || r.revision == of.Revision {
			t.Revision += r.pods
		}
	}
	return t
}

// Counts reports whether a pod counts for spreading and for domain limits: until it is
// terminal or told to go. A limit is about what is meant to stand in a domain, and the
// pod that follows one that was told to go must not have to wait for its grace period.
// Its resources and ports it keeps until it is gone; that is for other filters.
func Counts(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
