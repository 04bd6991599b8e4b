// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
// The pod's own host ports cannot be changed, so that no update of it is among them.
func (pl *HostPorts) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A pod that held a wanted port is gone. One that ends counts as gone, too.
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, QueueingHintFn: pl.afterPodDelete},
		// A node arrives that does not hold the ports itself, or gives them up.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAnnotation}, QueueingHintFn: pl.afterNodeChange},
	}, nil
}

func (pl *HostPorts) afterPodDelete(_ klog.Logger, pod *corev1.Pod, oldObj, _ any) (fwk.QueueingHint, error) {
	deleted, _, err := util.As[*corev1.Pod](oldObj, nil)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a pod event: %w", Name, err)
	}
	if deleted.Spec.NodeName == "" && deleted.Status.NominatedNodeName == "" {
		return fwk.QueueSkip, nil // it held no node's ports
	}
	freed := fwk.HostPortInfo{}
	hold(freed, deleted)
	wanted := hostPorts(pod)
	if _, hopeless := pl.reservedEverywhere(wanted); hopeless {
		return fwk.QueueSkip, nil
	}
	if slices.ContainsFunc(wanted, func(p hostport.Port) bool { return conflicts(freed, p) }) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

func (pl *HostPorts) afterNodeChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, fmt.Errorf("plugin %s: reading a node event: %w", Name, err)
	}
	wanted := hostPorts(pod)
	if _, hopeless := pl.reservedEverywhere(wanted); hopeless || refuses(after, wanted) {
		return fwk.QueueSkip, nil
	}
	if before != nil && !refuses(before, wanted) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// refuses reports whether the node itself, whatever pods it has, refuses one of the ports.
func refuses(node *corev1.Node, ports []hostport.Port) bool {
	reserved, err := clusterview.ReservedHostPorts(node)
	return err != nil || slices.ContainsFunc(ports, reserved.Conflicts)
}
