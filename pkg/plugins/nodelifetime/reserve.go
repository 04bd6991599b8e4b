// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Reserve leaves for whoever binds the pod when its lease ends. A pod without one has nothing there.
func (pl *NodeLifetime) Reserve(_ context.Context, cycle fwk.CycleState, _ *corev1.Pod, _ string) *fwk.Status {
	if l, err := read(cycle); err == nil {
		clusterview.WriteBinding(cycle, map[string]string{clusterview.LeaseExpiryAnnotation: l.now.Add(l.lease).UTC().Format(time.RFC3339)})
	}
	return nil
}

// Unreserve has nothing to take back: what was left is of the cycle.
func (pl *NodeLifetime) Unreserve(context.Context, fwk.CycleState, *corev1.Pod, string) {}
