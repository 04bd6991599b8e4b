// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

// What is counted of what is refused.
var (
	podUnreadable = refusal.CounterOf(Name, refusal.Unreadable)
	mismatched    = refusal.CounterOf(Name, "platform")
)

// stateKey is where the wish of the pod being scheduled is kept for the cycle.
const stateKey fwk.StateKey = "PreFilter" + Name

type state struct{ wish platform.Wish }

// Clone shares the wish, which nobody modifies.
func (s *state) Clone() fwk.StateData { return s }

// PreFilter reads what the pod wants. A pod whose platforms cannot be read is
// refused on all nodes, and preemption cannot help it.
func (pl *Platform) PreFilter(_ context.Context, cycle fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	wish, err := clusterview.PlatformWish(pod)
	if err != nil {
		podUnreadable.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if wish.Empty() {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	cycle.Write(stateKey, &state{wish})
	return nil, nil
}

// PreFilterExtensions is nil: pods that come and go change no node's platform.
func (pl *Platform) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the pod off the nodes of other platforms. No pod that is removed
// would change that, so preemption need not try.
func (pl *Platform) Filter(_ context.Context, cycle fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := cycle.Read(stateKey)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("plugin %s: the cycle has no platforms: is it enabled at PreFilter? %w", Name, err))
	}
	s, ok := data.(*state)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("plugin %s: reading %q: it holds a %T", Name, stateKey, data))
	}
	if !s.wish.Fits(clusterview.NodePlatform(info.Node())) {
		mismatched.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonPlatform)
	}
	return nil
}
