// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// unsaid is what a container requests that says nothing, as the scheduler's scores have it: DefaultMilliCPURequest and
// DefaultMemoryRequest of kube-scheduler.
var unsaid = corev1.ResourceList{
	corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
	corev1.ResourceMemory: *resource.NewQuantity(200<<20, resource.BinarySI),
}

// Request is what a pod requests of a node, in the units of a node's usage.
func Request(pod *corev1.Pod) placement.Usage {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{NonMissingContainerRequests: unsaid})
	return placement.Usage{
		CPU:    placement.Amount{Requested: requests.Cpu().MilliValue()},
		Memory: placement.Amount{Requested: requests.Memory().Value()},
	}
}
