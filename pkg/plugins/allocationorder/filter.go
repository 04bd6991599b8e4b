// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/internal/tenants"
)

// What is counted of what is refused.
var (
	podUnreadable = refusal.CounterOf(Name, refusal.Unreadable)
	full          = refusal.CounterOf(Name, "full")
	elsewhere     = refusal.CounterOf(Name, "partition")
	outOfTurn     = refusal.CounterOf(Name, "nominated")
)

// stateKey is where the allocation of the pod being scheduled is kept for the cycle.
const stateKey fwk.StateKey = "PreFilter" + Name

type state struct {
	claims *allocations.Claims
	of     *allocations.Allocation
}

// Clone shares the allocation, which nobody modifies.
func (s *state) Clone() fwk.StateData { return s }

// PreFilter finds the pod's allocation, and lets the next pod into the queue. It skips the pods of none.
func (pl *AllocationOrder) PreFilter(_ context.Context, cycle fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	claims, serial := pl.tenants.Claims()
	claim, known := claims.Of(pod)
	if !known || claim.Allocation == nil {
		return nil, fwk.NewStatus(fwk.Skip) // one of a namespace that is not known was not let in
	}
	switch err := pl.tenants.Take(pod, claims, claim.Allocation); {
	case errors.As(err, &tenants.FullError{}):
		full.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	case err != nil:
		podUnreadable.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	cycle.Write(stateKey, &state{claims, claim.Allocation})
	clusterview.AddNeeds(cycle, Name, strconv.FormatUint(serial, 10)+" "+claims.NodesKey(claim.Allocation))
	return nil, nil
}

// PreFilterExtensions is nil: pods that come and go change no node's partition.
func (pl *AllocationOrder) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the pod on the nodes of its partition that have the traits of its allocation. No pod that is removed would change that. And
// it keeps the pod from the place of one that comes before it.
func (pl *AllocationOrder) Filter(_ context.Context, cycle fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	data, err := cycle.Read(stateKey)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("plugin %s: the cycle has no allocation: is it enabled at PreFilter? %w", Name, err))
	}
	s, ok := data.(*state)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("plugin %s: reading %q: it holds a %T", Name, stateKey, data))
	}
	if !s.claims.Allows(s.of, node.Node()) {
		elsewhere.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonPartition)
	}
	if pl.takesPlace(pod, node) {
		outOfTurn.Inc()
		return fwk.NewStatus(fwk.Unschedulable, ErrReasonNominated)
	}
	return nil
}
