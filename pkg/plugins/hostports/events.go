// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
// The pod's own host ports cannot be changed, so that no update of it is among them.
func (pl *HostPorts) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A pod that held a wanted port is gone. One that ends counts as gone, too.
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, QueueingHintFn: refusal.HintIf(Name, "pod", pl.afterPodDelete)},
		// A node arrives that does not hold the ports itself, or gives them up.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAnnotation}, QueueingHintFn: refusal.HintIf(Name, "node", pl.afterNodeChange)},
	}, nil
}

func (pl *HostPorts) afterPodDelete(pod *corev1.Pod, deleted, _ *corev1.Pod) bool {
	if deleted.Spec.NodeName == "" && deleted.Status.NominatedNodeName == "" {
		return false // it held no node's ports
	}
	freed := fwk.HostPortInfo{}
	hold(freed, deleted)
	wanted := hostPorts(pod)
	if _, hopeless := pl.reservedEverywhere(wanted); hopeless {
		return false
	}
	return slices.ContainsFunc(wanted, func(p hostport.Port) bool { return conflicts(freed, p) })
}

func (pl *HostPorts) afterNodeChange(pod *corev1.Pod, before, after *corev1.Node) bool {
	wanted := hostPorts(pod)
	if _, hopeless := pl.reservedEverywhere(wanted); hopeless || refuses(after, wanted) {
		return false
	}
	return before == nil || refuses(before, wanted)
}

// refuses reports whether the node itself, whatever pods it has, refuses one of the ports.
func refuses(node *corev1.Node, ports []hostport.Port) bool {
	reserved, err := clusterview.ReservedHostPorts(node)
	return err != nil || slices.ContainsFunc(ports, reserved.Conflicts)
}
