// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
)

// What is counted of what is refused.
var (
	podUnreadable = refusal.CounterOf(Name, refusal.Unreadable)
	nodeEnds      = refusal.CounterOf(Name, "node_ends")
	nodeMalformed = refusal.CounterOf(Name, "node_malformed")
)

// stateKey is where the lease of the pod being scheduled is kept for the cycle.
const stateKey fwk.StateKey = "PreFilter" + Name

// leased is a lease that begins with the cycle.
type leased struct {
	now   time.Time
	lease time.Duration
}

// Clone shares the lease, which nobody modifies.
func (l *leased) Clone() fwk.StateData { return l }

// PreFilter reads the pod's lease, and skips pods without one. A pod whose lease cannot be read is refused on all nodes, and preemption
// cannot help it. One that has its node already, and is here to be resized, stays there.
func (pl *NodeLifetime) PreFilter(_ context.Context, cycle fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	lease, err := clusterview.LeaseOf(pod, pl.jobs)
	if err != nil {
		podUnreadable.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if lease == 0 || pod.Spec.NodeName != "" {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	now, back := pl.now()
	cycle.Write(stateKey, &leased{now, lease})
	// What is remembered of pods with the same lease stays true as time goes by: a node that does not live long enough for them never will
	// again, and that one does is not believed in a later cycle. What was refused by a clock that has been put back since may fit now.
	clusterview.AddNeeds(cycle, Name, fmt.Sprint(lease, " ", back))
	return nil, nil
}

// PreFilterExtensions is nil: pods that come and go change no node's end.
func (pl *NodeLifetime) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the pod off the nodes that end before its lease does. No pod that is removed would change that, so preemption need not try.
func (pl *NodeLifetime) Filter(_ context.Context, cycle fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	l, err := read(cycle)
	if err != nil {
		return fwk.AsStatus(err)
	}
	end, err := clusterview.EndOf(info.Node())
	switch {
	case err != nil:
		nodeMalformed.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonMalformed)
	case !lifetime.Outlives(end, l.now, l.lease):
		nodeEnds.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonEnds)
	}
	return nil
}

func read(cycle fwk.CycleState) (*leased, error) {
	data, err := cycle.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: the cycle has no lease: is it enabled at PreFilter? %w", Name, err)
	}
	l, ok := data.(*leased)
	if !ok {
		return nil, fmt.Errorf("plugin %s: reading %q: it holds a %T", Name, stateKey, data)
	}
	return l, nil
}
