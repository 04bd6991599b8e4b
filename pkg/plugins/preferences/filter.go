// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// What is counted of what is refused.
var (
	podUnreadable   = refusal.CounterOf(Name, refusal.Unreadable)
	policiesUnknown = refusal.CounterOf(Name, refusal.PoliciesUnknown)
	missing         = refusal.CounterOf(Name, "missing_property")
)

// PreFilter resolves the pod's levels and writes them to the CycleState. A pod whose
// levels cannot be read is refused on all nodes, and preemption cannot help it. A pod is
// refused in the same way if it is not known whether a policy governs it.
func (pl *Preferences) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	policy, err := pl.policies.Await(ctx, state, pod)
	if err != nil {
		policiesUnknown.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	pl.policies.NoteRivals(policy, pod)
	levels, err := pl.under(policy, pod)
	if err != nil {
		podUnreadable.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	clusterview.WriteLevels(state, levels)
	if !pl.restricts(pod, levels) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreFilterExtensions is nil: pods that come and go change no node's labels.
func (pl *Preferences) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the pod off the nodes that its levels leave out. No pod that is
// removed would change that, so preemption need not try.
func (pl *Preferences) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	levels, found, err := clusterview.ReadLevels(state)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("plugin %s: %w", Name, err))
	}
	if !found {
		return fwk.AsStatus(fmt.Errorf("plugin %s: the cycle has no levels: is it enabled at PreFilter?", Name))
	}
	if clusterview.LeftOut(node.Node(), levels.List) {
		missing.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonMissing)
	}
	return nil
}

// restricts reports whether the levels leave nodes out for a pod. For one of a
// DaemonSet they do not: it is not spread, and its node was chosen by its controller.
func (pl *Preferences) restricts(pod *corev1.Pod, levels clusterview.Levels) bool {
	return clusterview.AnyExcludes(levels.List) && !clusterview.Daemon(pod)
}
