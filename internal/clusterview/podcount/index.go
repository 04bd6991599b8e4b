// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcount counts the pods on every node, by workload and revision.
//
//   - index.go: what is counted, and what the index answers
//   - refresh.go: how it follows the scheduler's snapshots; stamp.go: whether a node has changed
//   - node.go: what is known of one node; workload.go: and of one workload
//   - selection.go: what pods count as under the selectors of constraints
//   - affinity.go: which pods others prefer near them
//   - images.go: which images nodes have
package podcount

import (
	"iter"
	"math"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Index counts the pods on every node by workload and revision, and keeps what is known
// of the nodes themselves. It is brought up to date from the scheduler's snapshot, and
// serves all workloads.
//
// The snapshot holds assumed pods, so a pod is counted from the moment a node has
// been chosen for it.
//
// What a refresh costs is what has changed, where the index is told what that is (see
// Follow), and a comparison of stamps for every node elsewhere. Of a changed node, only
// pods that were not there before are identified.
//
// An Index is not safe for concurrent use.
type Index struct {
	identifier *clusterview.Identifier
	// cluster is what the nodes are to all workloads; byID has ours by its numbers.
	cluster *tree.Nodes
	byID    []*count
	nodes   map[string]*count
	// order is the same nodes as the last snapshot had them.
	order     []listed
	view      view
	workloads workloads
	// serial numbers the nodes as they come, and changes of pods as they are counted.
	serial uint64
	// adopted and added are the identifier's at the last Refresh.
	adopted, added uint64
	// provisional are the nodes with pods whose ReplicaSet is not known.
	provisional map[*count]bool
	// lowest counts the nodes by the lowest priority of their pods.
	lowest map[int32]int
	// nodeLabels counts by label who has the values of nodes: no other label makes a node another one.
	nodeLabels map[string]int
	// labels are those of the pods that count; selections count pods under selectors.
	labels     podLabels
	selections selections
	affinities affinities
	images     images
}

// NewIndex returns an empty index.
func NewIndex(identifier *clusterview.Identifier) *Index {
	return &Index{
		identifier: identifier, cluster: tree.NewNodes(0), nodes: make(map[string]*count),
		workloads: make(workloads), nodeLabels: make(map[string]int), labels: make(podLabels), selections: selections{of: make(map[string][]*selection)}, provisional: make(map[*count]bool), lowest: make(map[int32]int),
		affinities: newAffinities(), images: make(images),
	}
}

// Nodes are the nodes as all workloads see them.
func (c *Index) Nodes() *tree.Nodes { return c.cluster }

// Values returns the values of nodes at levels. They are those of now: whoever keeps what they were says so, see Watch.
func (c *Index) Values(levels []level.Level) tree.Values {
	return func(node int32, l int) placement.Value {
		return clusterview.Value(c.byID[node].node, levels[l].Property)
	}
}

// Watch has a node that gets another value at one of the levels be another node, until Unwatch is called as often. A label that nobody
// watches may be written by the minute.
func (c *Index) Watch(levels []level.Level) {
	for _, l := range levels {
		c.nodeLabels[l.Property.Label]++
	}
}

// Unwatch takes Watch back.
func (c *Index) Unwatch(levels []level.Level) {
	for _, l := range levels {
		if c.nodeLabels[l.Property.Label]--; c.nodeLabels[l.Property.Label] == 0 {
			delete(c.nodeLabels, l.Property.Label)
		}
	}
}

// Since returns the nodes on which pods of a workload have come to count or no longer do, or somebody has changed their
// deletion costs, since a version, some more than once; and the version of now. If it can no longer tell,
// known is false, and the nodes are all on which any counts.
func (c *Index) Since(w clusterview.Workload, version uint64) (nodes []int32, now uint64, known bool) {
	nodes, known = c.workloads.get(w).since(version)
	return nodes, c.serial, known
}

// On returns how many pods of an identity's revision and workload count on a node.
func (c *Index) On(of clusterview.Identity, node int32) (revision, workload int64) {
	return c.workloads.get(of.Workload).on(c.byID[node], of)
}

// Info returns a node as the snapshot has it, nil for one that is not in it. To look it up in the snapshot by its name touches more
// memory, which is cold where pods come one by one.
func (c *Index) Info(node int32) fwk.NodeInfo {
	if n := c.byID[node]; n != nil {
		return c.order[n.at].info
	}
	return nil
}

// PodsOn returns all pods on a node, also those that do not count. It must not be altered.
func (c *Index) PodsOn(node int32) []fwk.PodInfo {
	if info := c.Info(node); info != nil {
		return info.GetPods()
	}
	return nil
}

// StampOn is the stamp of a node as it was looked at last. It is another one as soon as a pod has come there or gone, also if one
// has come and gone in between.
func (c *Index) StampOn(node int32) Stamp {
	if n := c.byID[node]; n != nil {
		return c.order[n.at].stamp
	}
	return unstamped
}

// Counts reports whether any pod of a workload counts, wherever it is.
func (c *Index) Counts(w clusterview.Workload) bool { return c.workloads.get(w) != nil }

// Revision returns the nodes on which pods of a revision count, with their number.
// Cordoned nodes and nodes that are not ready are among them: what stands there may
// still run. The nodes without any cost nothing.
func (c *Index) Revision(of clusterview.Identity) iter.Seq2[*corev1.Node, int64] {
	return func(yield func(*corev1.Node, int64) bool) {
		nodes, _ := c.workloads.get(of.Workload).since(0)
		for _, id := range nodes {
			if pods, _ := c.On(of, id); pods > 0 && !yield(c.byID[id].node, pods) {
				return
			}
		}
	}
}

// LowestPriority returns the lowest priority of any pod on a node, the highest there is
// if there is no pod.
func (c *Index) LowestPriority() int32 {
	lowest := int32(math.MaxInt32)
	for priority := range c.lowest {
		lowest = min(lowest, priority)
	}
	return lowest
}

// Counts reports whether a pod counts for spreading and for domain limits: until it is
// completed or terminating. A limit is about what is meant to stand in a domain, and the
// pod that follows a terminating one must not have to wait for its grace period.
// Its resources and ports it keeps until it is gone; that is for other filters.
func Counts(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
