// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultynode

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// PreFilter leaves for the other plugins of the cycle how the nodes have fared. It
// refuses no pod, and narrows down no nodes: a faulty node is the last choice and not
// none. That a scheduler gets here says that it is the one that places pods.
func (pl *FaultyNode) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	pl.cache.Activate(ctx)
	if !clusterview.Preassigned(pod) {
		clusterview.WriteFaults(state, pl.cache.For(pod))
	}
	return nil, nil
}

// PreFilterExtensions returns nothing: no other pod changes how a revision has fared.
func (pl *FaultyNode) PreFilterExtensions() fwk.PreFilterExtensions { return nil }
