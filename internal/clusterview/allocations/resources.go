// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// resourcesOf are the resources by which the pods of a partition are ordered, by name, and those that its allocations reserve and none of its
// nodes knows: a word that somebody has mistyped, or devices that are still to come. Nobody could be within the reservation any more if these
// counted, as it is for all resources that any allocation reserves. A partition without nodes is ordered as when it had some.
func (t *Tree) resourcesOf(p *Partition, nodes []*corev1.Node) (counted, absent []corev1.ResourceName) {
	reserves := make(map[corev1.ResourceName]bool)
	for _, a := range t.Allocations {
		if t.isOf(a, p) {
			for name := range a.Reserved {
				reserves[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reserves)) {
		// Kubelets say 0 while a device plugin is away. The order is no other one for that.
		known := func(node *corev1.Node) bool { _, is := node.Status.Allocatable[name]; return is }
		if len(nodes) == 0 || slices.ContainsFunc(nodes, known) {
			counted = append(counted, name)
		} else {
			absent = append(absent, name)
		}
	}
	if len(counted) == 0 {
		counted = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	}
	return counted, absent
}

// isOf reports whether an allocation is accepted, and of a partition.
func (t *Tree) isOf(a *Allocation, p *Partition) bool {
	r := t.resolved[a]
	return r.err == nil && r.partition == p
}
