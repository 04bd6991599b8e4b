// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// What is counted of what is refused.
var (
	podUnreadable = refusal.CounterOf(Name, refusal.Unreadable)
	noDriver      = refusal.CounterOf(Name, "csi_driver")
	noHandler     = refusal.CounterOf(Name, "runtime_handler")
)

// stateKey is where the needs of the pod being scheduled are kept for the cycle.
const stateKey fwk.StateKey = "PreFilter" + Name

type state struct{ needs needs }

// Clone shares the needs, which nobody modifies.
func (s *state) Clone() fwk.StateData { return s }

// PreFilter finds out what the pod needs. A pod whose RuntimeClass does not exist is
// refused on all nodes, and preemption cannot help it.
func (pl *NodePlugins) PreFilter(_ context.Context, cycle fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	n, err := pl.needed.of(pod)
	if err != nil {
		podUnreadable.Inc()
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	if n.empty() {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	cycle.Write(stateKey, &state{n})
	return nil, nil
}

// PreFilterExtensions is nil: pods that come and go install nothing on a node. One
// that is a driver is not there before its kubelet says so, in the CSINode.
func (pl *NodePlugins) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps the pod off the nodes that lack something. No pod that is removed
// would change that, so preemption need not try.
func (pl *NodePlugins) Filter(ctx context.Context, cycle fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := cycle.Read(stateKey)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("plugin %s: the cycle has no needs: is it enabled at PreFilter? %w", Name, err))
	}
	s, ok := data.(*state)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("plugin %s: reading %q: it holds a %T", Name, stateKey, data))
	}
	node := info.Node()
	if len(s.needs.drivers) > 0 {
		csiNode, err := pl.csiNode(node.Name)
		if err != nil {
			return fwk.AsStatus(fmt.Errorf("plugin %s: %w", Name, err))
		}
		if driver := s.needs.missingDriver(csiNode); driver != "" {
			klog.FromContext(ctx).V(5).Info("Node lacks a CSI driver", "pod", klog.KObj(pod), "node", klog.KObj(node), "driver", driver)
			noDriver.Inc()
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonDriver)
		}
	}
	if !s.needs.handledBy(node) && !pl.handledByNow(s.needs, node.Name) {
		noHandler.Inc()
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, ErrReasonHandler)
	}
	return nil
}

// handledByNow reports whether a node has the handler by the informer, which is ahead of
// the scheduler's cache: the pod may have been woken by what the cache has not seen.
func (pl *NodePlugins) handledByNow(n needs, name string) bool {
	node, err := pl.nodes.Get(name)
	return err == nil && n.handledBy(node)
}

// csiNode is the CSINode of a node, nil if there is none.
func (pl *NodePlugins) csiNode(name string) (*storagev1.CSINode, error) {
	csiNode, err := pl.csiNodes.CSINodes().Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading CSINode %q: %w", name, err)
	}
	return csiNode, nil
}
