// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Tree is all Partitions and Allocations of a cluster at one moment. It is never modified.
type Tree struct {
	// Partitions and Allocations are in the order of their age.
	Partitions  []*Partition
	Allocations []*Allocation

	partitions  map[string]*Partition
	allocations map[string]*Allocation
	resolved    map[*Allocation]resolution
}

// resolution is what comes of following an allocation's parents to the top.
type resolution struct {
	// partition is that of the topmost.
	partition *Partition
	// reason and err say why it is not accepted, by the reason of a condition. Err is nil if it is.
	reason string
	err    error
}

// NewTree puts Partitions and Allocations together.
func NewTree(partitions []*Partition, all []*Allocation) *Tree {
	t := &Tree{
		Partitions: slices.Clone(partitions), Allocations: slices.Clone(all),
		partitions: make(map[string]*Partition), allocations: make(map[string]*Allocation), resolved: make(map[*Allocation]resolution),
	}
	slices.SortFunc(t.Partitions, func(p, q *Partition) int { return p.older(&q.Object) })
	slices.SortFunc(t.Allocations, func(a, b *Allocation) int { return a.older(&b.Object) })
	for _, p := range t.Partitions {
		t.partitions[p.Name] = p
	}
	for _, a := range t.Allocations {
		t.allocations[a.Name] = a
	}
	for _, a := range t.Allocations {
		t.resolve(a, nil)
	}
	return t
}

// resolve follows the parents of an allocation, of which some below it are being followed already.
func (t *Tree) resolve(a *Allocation, below []string) resolution {
	if r, done := t.resolved[a]; done {
		return r
	}
	// What cannot be read of it comes first: its partition and its parent may be of that.
	r := resolution{reason: a.reason, err: a.err}
	if r.err == nil {
		r = t.follow(a, below)
	}
	t.resolved[a] = r
	return r
}

func (t *Tree) follow(a *Allocation, below []string) resolution {
	if i := slices.Index(below, a.Name); i >= 0 {
		cycle := append(slices.Clone(below[i:]), a.Name)
		return resolution{reason: placementv1alpha1.ReasonParentCycle, err: fmt.Errorf("spec.parent: the parents are a cycle: %s: give one of them another parent", few(cycle))}
	}
	if a.Parent == "" {
		p, ok := t.partitions[a.Partition]
		if !ok {
			return resolution{reason: placementv1alpha1.ReasonPartitionMissing, err: fmt.Errorf("spec.partition: there is no Partition %q: make it, or name another", a.Partition)}
		}
		if p.err != nil {
			return resolution{reason: placementv1alpha1.ReasonPartitionMissing, err: fmt.Errorf("spec.partition: Partition %q is not accepted: see its condition Accepted", a.Partition)}
		}
		return resolution{partition: p}
	}
	parent, ok := t.allocations[a.Parent]
	if !ok {
		return resolution{reason: placementv1alpha1.ReasonParentMissing, err: fmt.Errorf("spec.parent: there is no Allocation %q: make it, or name another", a.Parent)}
	}
	r := t.resolve(parent, append(below, a.Name))
	switch {
	case r.reason == placementv1alpha1.ReasonParentCycle:
		return r
	case r.err != nil:
		return resolution{reason: placementv1alpha1.ReasonParentNotAccepted, err: fmt.Errorf("spec.parent: Allocation %q is not accepted: see its condition Accepted", a.Parent)}
	case a.Partition != "" && a.Partition != r.partition.Name:
		return resolution{reason: placementv1alpha1.ReasonPartitionMismatch,
			err: fmt.Errorf("spec.partition: it is %q, and that of the parent %q is %q: name that, or none, or another parent", a.Partition, a.Parent, r.partition.Name)}
	}
	return r
}

// few names the first of some names, and the last.
func few(names []string) string {
	const most = 8
	if len(names) > most {
		names = append(slices.Clone(names[:most-2]), "…", names[len(names)-1])
	}
	return strings.Join(names, ", ")
}

// PartitionOf returns the partition of an allocation. The error says why the allocation is not accepted, by the reason of a condition.
func (t *Tree) PartitionOf(a *Allocation) (p *Partition, reason string, err error) {
	r := t.resolved[a]
	return r.partition, r.reason, r.err
}

// PartitionOfNode returns the partition of a node, the oldest of those that select it. It is nil if none does.
func (t *Tree) PartitionOfNode(node *corev1.Node) *Partition {
	for _, p := range t.Partitions {
		if p.nodes.Matches(labels.Set(node.Labels)) {
			return p
		}
	}
	return nil
}

// SharedNodes tells by name which other partitions select some of the nodes that a partition selects, and how many.
func (t *Tree) SharedNodes(p *Partition, nodes []*corev1.Node) map[string]int {
	shared := make(map[string]int)
	for _, node := range nodes {
		set := labels.Set(node.Labels)
		if !p.nodes.Matches(set) {
			continue
		}
		for _, q := range t.Partitions {
			if q != p && q.nodes.Matches(set) {
				shared[q.Name]++
			}
		}
	}
	return shared
}

// Opens reports whether pods of an allocation may run on a node that were kept from it before, or from all nodes: before is nil for one that
// has come.
func (t *Tree) Opens(before, after *corev1.Node) bool {
	return slices.ContainsFunc(t.Allocations, func(a *Allocation) bool {
		return t.Allows(a, after) && (before == nil || !t.Allows(a, before))
	})
}

// Allows reports whether a pod of an allocation may run on a node: it is of its partition, and has its traits.
func (t *Tree) Allows(a *Allocation, node *corev1.Node) bool {
	p, _, err := t.PartitionOf(a)
	return err == nil && t.PartitionOfNode(node) == p && t.hasTraits(a, node)
}

// NodesKey names the nodes that Allows allows. The allocation must be accepted. Two of one tree with the same key have the same nodes, because of
// their partition and the nearest traits above them, as most do. Two with different keys may have the same nodes all the same.
func (t *Tree) NodesKey(a *Allocation) string {
	for up := a; up != nil; up = t.allocations[up.Parent] {
		if !up.traits.Empty() {
			return "allocation " + up.Name
		}
	}
	return "partition " + t.resolved[a].partition.Name
}

// hasTraits reports whether a node has the labels that an allocation and those above it ask for. It is for one that is accepted.
func (t *Tree) hasTraits(a *Allocation, node *corev1.Node) bool {
	for a != nil {
		if !a.traits.Matches(labels.Set(node.Labels)) {
			return false
		}
		a = t.allocations[a.Parent]
	}
	return true
}
