// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultynode

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Reserve counts the pod as unproven on its node, so that the next one knows before
// the API server does.
func (pl *FaultyNode) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	pl.cache.Assume(pod, node)
	return nil
}

// Unreserve takes that back.
func (pl *FaultyNode) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	pl.cache.Unassume(pod)
}
