// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// onePod is what a pod counts for on its node.
var onePod = placement.Tally{Revision: 1, Workload: 1, All: 1}

// Reserve counts the pod on its node in the tree of its batch, so that the tree is
// true before the next snapshot says the same. The snapshot's word is absolute and
// replaces this.
func (pl *SpreadTree) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	id := pl.identifier.Identify(pod)
	if id.Preassigned {
		return nil
	}
	levels, err := levels(state, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.forest.add(batch{id, levels}, node, onePod)
	return nil
}

// Unreserve has the node counted anew. To take one pod off would be wrong whenever
// the snapshot has said so already: a pod that is deleted while it is being bound is
// gone from it before its reservation is taken back.
func (pl *SpreadTree) Unreserve(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node string) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.forest.census.Doubt(node)
}
