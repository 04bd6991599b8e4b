// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits

import (
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// What is counted of what is refused.
var (
	podUnreadable   = refusal.CounterOf(Name, refusal.Unreadable)
	policiesUnknown = refusal.CounterOf(Name, refusal.PoliciesUnknown)
	missing         = refusal.CounterOf(Name, "missing_property")
	full            = refusal.CounterOf(Name, "domain_full")
)

// PreFilter counts the pods of the pod's revision by domain, once for the cycle. It
// skips the pods that have no limits, and refuses those whose limits cannot be read.
func (pl *DomainLimits) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	policy, err := pl.policies.Await(ctx, state, pod)
	if err != nil {
		policiesUnknown.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	limits, err := pl.under(policy, pod)
	if err != nil {
		podUnreadable.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if len(limits) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	// All nodes, and not only those the pod may go to: pods elsewhere in a domain count.
	snapshot, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("plugin %s: listing nodes: %w", Name, err))
	}
	id := pl.index.RefreshFor(pod, podcount.Snapshot{Nodes: snapshot})
	state.Write(countsKey, &counts{id, limit.Count(limits, pl.domains(id, limits))})
	return nil, nil
}

// domains returns the nodes with pods of a revision, as limits see them.
func (pl *DomainLimits) domains(id clusterview.Identity, limits []limit.Limit) iter.Seq2[[]placement.Value, int64] {
	return func(yield func([]placement.Value, int64) bool) {
		var values []placement.Value // of the node at hand: Count keeps none
		for node, pods := range pl.index.Revision(id) {
			values = clusterview.AppendDomains(values[:0], node, limits)
			if !yield(values, pods) {
				return
			}
		}
	}
}

// PreFilterExtensions returns the plugin: pods that come and go change the counts.
func (pl *DomainLimits) PreFilterExtensions() fwk.PreFilterExtensions { return pl }

// AddPod counts a pod on a node in a what-if: one that is nominated for it, or one
// that preemption spares.
func (pl *DomainLimits) AddPod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, added fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	return pl.move(state, added.GetPod(), node.Node(), 1)
}

// RemovePod takes a pod off a node in a what-if: one that preemption would remove.
func (pl *DomainLimits) RemovePod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, removed fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	return pl.move(state, removed.GetPod(), node.Node(), -1)
}

func (pl *DomainLimits) move(state fwk.CycleState, pod *corev1.Pod, node *corev1.Node, pods int64) *fwk.Status {
	c, err := read(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	c.move(pl.identifier.Identify(pod), pod, node, pods)
	return nil
}

// Filter keeps the pod off nodes whose domains are full, where a pod that goes makes
// room, and off those that lack a property, where nothing that preemption does helps.
func (pl *DomainLimits) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	c, err := read(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	switch c.check(node.Node()) {
	case limit.Missing:
		missing.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonMissing)
	case limit.Full:
		full.Inc()
		return fwk.NewStatus(fwk.Unschedulable, ErrReasonFull)
	}
	return nil
}
