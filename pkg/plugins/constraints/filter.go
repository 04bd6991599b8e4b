// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
)

// What is counted of what is refused.
var (
	podUnreadable = refusal.CounterOf(Name, refusal.Unreadable)
	mismatched    = refusal.CounterOf(Name, "constraints")
)

// stateKey is where the constraints of the pod being scheduled are kept for the cycle.
const stateKey fwk.StateKey = "PreFilter" + Name

type state struct{ constraints []constraint.Constraint }

// Clone shares the constraints, which nobody modifies.
func (s *state) Clone() fwk.StateData { return s }

// PreFilter reads the pod's constraints. A pod whose constraints cannot be read is
// refused on all nodes, and preemption cannot help it.
func (pl *Constraints) PreFilter(_ context.Context, cycle fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	constraints, err := clusterview.Constraints(pod)
	if err != nil {
		podUnreadable.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if len(constraints) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	cycle.Write(stateKey, &state{constraints})
	return nil, nil
}

// PreFilterExtensions is nil: pods that come and go change nothing of a node that a
// constraint could be about.
func (pl *Constraints) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the pod off the nodes on which a constraint does not hold. No pod
// that is removed would change that, so preemption need not try.
func (pl *Constraints) Filter(_ context.Context, cycle fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := cycle.Read(stateKey)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("plugin %s: the cycle has no constraints: is it enabled at PreFilter? %w", Name, err))
	}
	s, ok := data.(*state)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("plugin %s: reading %q: it holds a %T", Name, stateKey, data))
	}
	if !hold(s.constraints, info.Node()) && !pl.holdNow(s.constraints, info.Node().Name) {
		mismatched.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonConstraints)
	}
	return nil
}

// holdNow reports whether constraints about addresses hold by the informer, which is
// ahead of the scheduler's cache: the pod may have been woken by an address that the
// cache has not seen. Others wake no pod before the cache has seen the node.
func (pl *Constraints) holdNow(constraints []constraint.Constraint, name string) bool {
	if !constraint.About(constraints, constraint.IP) {
		return false
	}
	node, err := pl.nodes.Get(name)
	return err == nil && hold(constraints, node)
}
