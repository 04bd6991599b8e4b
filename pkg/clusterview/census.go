// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Census counts the pods on every node by workload and revision. It is brought up
// to date from the scheduler's snapshot, and serves all workloads.
//
// The snapshot holds assumed pods, so a pod is counted from the moment a node has
// been chosen for it.
//
// What a refresh costs is what has changed, where the census is told what that is (see
// Follow), and a comparison of stamps for every node elsewhere. Of a changed node, only
// pods that were not there before are identified.
//
// A Census is not safe for concurrent use.
type Census struct {
	identifier *Identifier
	nodes      map[string]*count
	// order is the same nodes as the last snapshot had them.
	order []seen
	view  view
	// newest is the node that changed last; see count.older.
	newest    *count
	workloads register
	// serial numbers the nodes as they come.
	serial uint64
	// version moves with every change; departed is the version of the last departure.
	version, departed uint64
	// epoch is the identifier's at the last Refresh.
	epoch uint64
	// aliases counts the nodes whose host name is not their name.
	aliases int
	// lens is the levels that the values of nodes are remembered for.
	lens lens
}

// lens is levels as far as the values of nodes depend on them, and a number of their
// own. Most workloads of a cluster have the same, and reading labels is much of
// what it costs to tell a tree of all nodes.
type lens struct {
	properties []level.Property
	serial     uint64
}

// through makes the lens that of levels.
func (l *lens) through(levels []level.Level) {
	same := func(p level.Property, of level.Level) bool { return p == of.Property }
	if l.serial > 0 && slices.EqualFunc(l.properties, levels, same) {
		return
	}
	l.serial++
	l.properties = make([]level.Property, len(levels))
	for i := range levels {
		l.properties[i] = levels[i].Property
	}
}

// NewCensus returns an empty census.
func NewCensus(identifier *Identifier) *Census {
	return &Census{identifier: identifier, nodes: make(map[string]*count), workloads: make(register)}
}

// Version identifies the state of the census: Each reports what came after one.
func (c *Census) Version() uint64 { return c.version }

// Each calls changed for every node that has changed since a version of the
// census, as levels, workload and revision see it. Nobody may alter the values. It returns whether nodes have
// departed since; ask Has for which.
func (c *Census) Each(since uint64, of Identity, levels []level.Level, changed func(placement.Node)) (departures bool) {
	w := c.workloads[of.Workload]
	c.lens.through(levels)
	for n := c.newest; n != nil && n.version > since; n = n.older {
		changed(c.see(n, w.tally(n, of), levels))
	}
	return c.departed > since
}

// EachOf calls stands for every node on which pods of the workload count, as Each does.
func (c *Census) EachOf(of Identity, levels []level.Level, stands func(placement.Node)) {
	c.lens.through(levels)
	for n, tally := range c.workloads[of.Workload].tallies(of) {
		stands(c.see(n, tally, levels))
	}
}

// see is a node through the lens of levels.
func (c *Census) see(n *count, tally placement.Tally, levels []level.Level) placement.Node {
	return placement.Node{Name: n.name, Values: n.valuesThrough(&c.lens, levels), Tally: tally, Unready: Unready(n.node)}
}

// Counts reports whether any pod of a workload counts, wherever it is.
func (c *Census) Counts(w Workload) bool { return c.workloads[w] != nil }

// Revision returns the nodes on which pods of a revision count, with their number.
// Cordoned nodes and nodes that are not ready are among them: what stands there may
// still run. The nodes without any cost nothing.
func (c *Census) Revision(of Identity) iter.Seq2[*corev1.Node, int64] {
	return func(yield func(*corev1.Node, int64) bool) {
		for n, t := range c.workloads[of.Workload].tallies(of) {
			if t.Revision > 0 && !yield(n.node, t.Revision) {
				return
			}
		}
	}
}

// HostsAreNodes reports whether the label of a host name tells every node apart, since
// it is the node's name, as kubelets have it unless they are told otherwise.
func (c *Census) HostsAreNodes() bool { return c.aliases == 0 }

// Len is the number of nodes.
func (c *Census) Len() int { return len(c.nodes) }

// Has reports whether the census knows a node.
func (c *Census) Has(name string) bool {
	_, ok := c.nodes[name]
	return ok
}

// Changed returns the version at which a node changed last, 0 for a node that the
// census does not know. No two changes, of whatever nodes, have the same.
func (c *Census) Changed(name string) uint64 {
	if n, ok := c.nodes[name]; ok {
		return n.version
	}
	return 0
}

// Counts reports whether a pod counts for spreading and for domain limits: until it is
// terminal or told to go. A limit is about what is meant to stand in a domain, and the
// pod that follows one that was told to go must not have to wait for its grace period.
// Its resources and ports it keeps until it is gone; that is for other filters.
func Counts(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
