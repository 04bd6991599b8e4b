// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	// mixedNodes are the CPUs of the nodes of a row that is Mixed, in turn within each rack.
	mixedNodes = []int64{4, 8, 64}
	// mixedPods are the thousandths of a CPU that the pods of its groups request, in turn. A
	// small node is full with one of each.
	mixedPods = []int64{100, 900, 3000}
)

// capacity is what node number i has.
func (w Workload) capacity(i int) corev1.ResourceList {
	cpu := int64(nodeCPU)
	if w.Mixed {
		cpu = mixedNodes[i/(regions*zonesOfRegion)%len(mixedNodes)]
	}
	return corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(cpu*memoryOfCPU<<30, resource.BinarySI),
		corev1.ResourcePods: *resource.NewQuantity(podsOfNode, resource.DecimalSI),
	}
}

// request is the thousandths of a CPU that a pod of a group requests, 0 for those of a row
// whose pods are all alike. Memory is never short.
func (w Workload) request(group int) int64 {
	if !w.Mixed {
		return 0
	}
	return mixedPods[group%len(mixedPods)]
}

// More is how many more pods of a group a node can take that has these pods on it. It is for
// rows that are Mixed: in the others no node becomes full.
func (w Workload) More(group int, node *corev1.Node, on []*corev1.Pod) int {
	free := node.Status.Allocatable.Cpu().MilliValue()
	for _, pod := range on {
		free -= pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	// A scheduler that looks at nothing may have put more on it than there is room for.
	return int(max(free, 0) / w.request(group))
}
