// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Reserve notes that a pod is about to be bound, and gives it the lowest identity of its group that is free. It is bound with it, in an
// annotation that its containers read by the downward API.
func (pl *AllocationOrder) Reserve(_ context.Context, cycle fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	data, err := cycle.Read(stateKey)
	if err != nil {
		return nil // it is of no allocation
	}
	s, ok := data.(*state)
	if !ok {
		return nil
	}
	id, ok := pl.tenants.Reserve(pod, s.claims, s.of)
	if !ok {
		pl.tenants.Retry(pod)
		name, size, _ := s.of.Group(pod)
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("identity group %q has no identity left, or it is not known yet which of the %d are held: the pod is tried again when one is free; a larger count in allocation %q lets more run", name, size, s.of.Name))
	}
	if id >= 0 {
		clusterview.WriteBinding(cycle, map[string]string{clusterview.IdentityAnnotation: strconv.Itoa(id)})
	}
	return nil
}

// Unreserve takes that back.
func (pl *AllocationOrder) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	pl.tenants.Unreserve(pod)
}
