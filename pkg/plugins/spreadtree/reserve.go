// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// reservedKey is where a cycle remembers what it counted, so that Unreserve takes
// back only that, and only once.
const reservedKey fwk.StateKey = "Reserve" + Name

// onePod is what a pod counts for on its node.
var onePod = placement.Tally{Revision: 1, Workload: 1, All: 1}

type reserved struct{ batch batch }

// Clone shares the reservation: it is written once.
func (r *reserved) Clone() fwk.StateData { return r }

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
	b := batch{id, levels}
	pl.mu.Lock()
	pl.forest.add(b, node, onePod)
	pl.mu.Unlock()
	state.Write(reservedKey, &reserved{batch: b})
	return nil
}

// Unreserve takes back what Reserve counted, if it did.
func (pl *SpreadTree) Unreserve(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node string) {
	data, err := state.Read(reservedKey)
	if err != nil {
		return
	}
	state.Delete(reservedKey)
	if r, ok := data.(*reserved); ok {
		pl.mu.Lock()
		pl.forest.takeBack(r.batch, node, onePod)
		pl.mu.Unlock()
	}
}
