// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreEnqueue holds a pod whose turn it is not. The message says where it is in the order.
func (pl *AllocationOrder) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if err := pl.tenants.Admit(pod); err != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	return nil
}

// Less reports whether a is taken from the queue before b.
func (pl *AllocationOrder) Less(a, b fwk.QueuedEntityInfo) bool { return pl.tenants.Before(a, b) }
