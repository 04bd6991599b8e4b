// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// hasAlternatives reports whether a claim of a pod lists alternatives in the order of preference, or is not known: DynamicResources scores
// nodes by which of them they have.
func (c *Claims) hasAlternatives(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) == 0 {
		return false
	}
	if c.devices == nil {
		return false // nobody scores claims
	}
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(of corev1.PodResourceClaim) bool {
		name, _, err := resourceclaim.Name(pod, &of)
		if err != nil || name == nil {
			return err != nil // without a name none is needed
		}
		claim, err := c.devices.ResourceClaims().Get(pod.Namespace, *name)
		return err != nil || slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return len(r.FirstAvailable) > 1 })
	})
}
