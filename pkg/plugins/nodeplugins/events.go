// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// runtimeClasses is how the framework spells a resource that it has no name for.
const runtimeClasses fwk.EventResource = "runtimeclasses.v1.node.k8s.io"

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
// What a pod asks for itself cannot change: its volumes and its RuntimeClass are fixed.
func (pl *NodePlugins) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A kubelet says that a driver has been installed on its node.
		{Event: fwk.ClusterEvent{Resource: fwk.CSINode, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: pl.afterCSINodeChange},
		// A node arrives that has the handler. Handlers have no event of their own: they come with
		// the first report of the kubelet, which makes the node ready, or with one after
		// a restart of the runtime, in which the node was not ready.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeTaint | fwk.UpdateNodeCondition}, QueueingHintFn: pl.afterNodeChange},
		// A claim of the pod is bound, and to a volume of another driver than its class
		// promised, or of none; or it comes only now.
		{Event: fwk.ClusterEvent{Resource: fwk.PersistentVolumeClaim, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: pl.afterClaimChange},
		// A provisioner turns out to be no CSI driver. A class or a volume cannot become
		// another one's: what they name is fixed.
		{Event: fwk.ClusterEvent{Resource: fwk.CSIDriver, ActionType: fwk.Delete}, QueueingHintFn: pl.afterDriverDeletion},
		// The pod's RuntimeClass, without which it is refused everywhere, comes back.
		{Event: fwk.ClusterEvent{Resource: runtimeClasses, ActionType: fwk.Add}, QueueingHintFn: pl.afterRuntimeClassAdd},
	}, nil
}

// queueIf is the hint's answer.
func queueIf(helps bool) (fwk.QueueingHint, error) {
	if helps {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

func unreadable(kind string, err error) (fwk.QueueingHint, error) {
	return fwk.Queue, fmt.Errorf("plugin %s: reading a %s event: %w", Name, kind, err)
}

func (pl *NodePlugins) afterCSINodeChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*storagev1.CSINode](oldObj, newObj)
	if err != nil {
		return unreadable("CSINode", err)
	}
	n, err := pl.needed.of(pod)
	if err != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // no node helps a pod without its RuntimeClass
	}
	return queueIf(len(n.drivers) > 0 && n.missingDriver(before) != "" && n.missingDriver(after) == "")
}

func (pl *NodePlugins) afterNodeChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	_, after, err := util.As[*corev1.Node](oldObj, newObj)
	if err != nil {
		return unreadable("node", err)
	}
	n, err := pl.needed.of(pod)
	if err != nil {
		return fwk.QueueSkip, nil //nolint:nilerr // no node helps a pod without its RuntimeClass
	}
	// Whether the node had the handler before does not matter: it may have come in
	// an update without an event. Drivers are none of a node's, but of its CSINode.
	return queueIf(n.handler != "" && n.handledBy(after))
}

func (pl *NodePlugins) afterClaimChange(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*corev1.PersistentVolumeClaim](oldObj, newObj)
	if err != nil {
		return unreadable("claim", err)
	}
	if after.Namespace != pod.Namespace || (before != nil && before.Spec.VolumeName == after.Spec.VolumeName) {
		return fwk.QueueSkip, nil
	}
	for i := range pod.Spec.Volumes {
		if claimName(pod, &pod.Spec.Volumes[i]) == after.Name {
			return fwk.Queue, nil
		}
	}
	return fwk.QueueSkip, nil
}

func (pl *NodePlugins) afterDriverDeletion(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, _, err := util.As[*storagev1.CSIDriver](oldObj, newObj)
	if err != nil {
		return unreadable("CSIDriver", err)
	}
	for i := range pod.Spec.Volumes {
		claim, err := pl.needed.claims.PersistentVolumeClaims(pod.Namespace).Get(claimName(pod, &pod.Spec.Volumes[i]))
		if err == nil && pl.needed.provisioner(volume.GetPersistentVolumeClaimClass(claim)) == before.Name {
			return fwk.Queue, nil
		}
	}
	return fwk.QueueSkip, nil
}

func (pl *NodePlugins) afterRuntimeClassAdd(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	_, after, err := util.As[metav1.Object](oldObj, newObj)
	if err != nil {
		return unreadable("RuntimeClass", err)
	}
	return queueIf(after.GetName() == className(pod))
}
