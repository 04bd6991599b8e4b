// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/refusal"
)

// EventsToRegister lists what can make a pod that this plugin refused schedulable.
// What a pod asks for itself cannot change: its volumes and its RuntimeClass are fixed. That the RuntimeClass
// comes back is none of these events: see wakeOnClass.
func (pl *NodePlugins) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		// A kubelet says that a driver has been installed on its node.
		{Event: fwk.ClusterEvent{Resource: fwk.CSINode, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "CSINode", pl.afterCSINodeChange)},
		// A node arrives that has the handler, or the drivers; or it becomes one that pods may go to.
		// That a node reports another handler has no event: see handlersChanged.
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeTaint | fwk.UpdateNodeCondition}, QueueingHintFn: refusal.HintIf(Name, "node", pl.afterNodeChange)},
		// A claim of the pod is bound, and to a volume of another driver than its class
		// promised, or of none; or it comes only now.
		{Event: fwk.ClusterEvent{Resource: fwk.PersistentVolumeClaim, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "claim", pl.afterClaimChange)},
		// A class of the pod names another provisioner. That is fixed, so it is mended by
		// making the class anew, which reads like an update to who has missed the deletion.
		// The deletion alone helps nobody: VolumeBinding refuses claims without their class.
		{Event: fwk.ClusterEvent{Resource: fwk.StorageClass, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: refusal.HintIf(Name, "StorageClass", pl.afterClassChange)},
		// A provisioner turns out to be no CSI driver.
		{Event: fwk.ClusterEvent{Resource: fwk.CSIDriver, ActionType: fwk.Delete}, QueueingHintFn: refusal.HintIf(Name, "CSIDriver", pl.afterDriverDeletion)},
	}, nil
}

// handlersChanged reports whether a kubelet reports other handlers than before. A
// runtime that restarts quickly leaves its node ready, and the framework sees no event.
func handlersChanged(before, after *corev1.Node) bool {
	return !slices.Equal(handlers(before), handlers(after))
}

// suits reports whether a pod wants a handler and a node has it.
func (pl *NodePlugins) suits(pod *corev1.Pod, node *corev1.Node) bool {
	n, err := pl.needed.of(pod)
	return err == nil && n.handler != "" && n.handledBy(node)
}

func (pl *NodePlugins) afterCSINodeChange(pod *corev1.Pod, before, after *storagev1.CSINode) bool {
	n, err := pl.needed.of(pod)
	if err != nil {
		return false // no node helps a pod without its RuntimeClass
	}
	return len(n.drivers) > 0 && n.missingDriver(before) != "" && n.missingDriver(after) == ""
}

func (pl *NodePlugins) afterNodeChange(pod *corev1.Pod, before, after *corev1.Node) bool {
	n, err := pl.needed.of(pod)
	if err != nil {
		return false // no node helps a pod without its RuntimeClass
	}
	if before != nil {
		// Whether the node had the handler before does not matter: it may have come in an
		// update without an event. Drivers are none of a node's, but of its CSINode.
		return pl.suits(pod, after)
	}
	// The event of the CSINode may have been a moment too early: the pod met no node yet.
	csiNode, err := pl.csiNode(after.Name)
	if err != nil {
		return true // the filter says why it cannot be read
	}
	return !n.empty() && n.missingDriver(csiNode) == "" && n.handledBy(after)
}

func (pl *NodePlugins) afterClaimChange(pod *corev1.Pod, before, after *corev1.PersistentVolumeClaim) bool {
	if after.Namespace != pod.Namespace || (before != nil && before.Spec.VolumeName == after.Spec.VolumeName) {
		return false
	}
	for i := range pod.Spec.Volumes {
		if claimName(pod, &pod.Spec.Volumes[i]) == after.Name {
			return true
		}
	}
	return false
}

func (pl *NodePlugins) afterDriverDeletion(pod *corev1.Pod, before, _ *storagev1.CSIDriver) bool {
	return pl.anyClass(pod, func(class string) bool { return pl.needed.provisioner(class) == before.Name })
}

func (pl *NodePlugins) afterClassChange(pod *corev1.Pod, before, after *storagev1.StorageClass) bool {
	if before != nil && before.Provisioner == after.Provisioner {
		return false
	}
	return pl.anyClass(pod, func(class string) bool { return class == after.Name })
}

// anyClass reports whether a class of the pod's claims is meant. Claims that do not
// exist have none.
func (pl *NodePlugins) anyClass(pod *corev1.Pod, meant func(class string) bool) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		claim, err := pl.needed.claims.PersistentVolumeClaims(pod.Namespace).Get(claimName(pod, &v))
		return err == nil && meant(volume.GetPersistentVolumeClaimClass(claim))
	})
}

// wakeOnClass wakes the pods that wait for a RuntimeClass when it comes back, or comes with another handler. The framework has events of such a
// kind too, from an informer of its own: a pod that is woken by them may be tried before the plugin sees the class, and would wait for
// minutes then.
func wakeOnClass(classes cache.SharedInformer, waiting *refusal.Waiting) error {
	wake := func(class *nodev1.RuntimeClass) {
		waiting.Wake(func(pod *corev1.Pod) bool { return className(pod) == class.Name })
	}
	_, err := classes.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if class, ok := obj.(*nodev1.RuntimeClass); ok && !isInInitialList {
				wake(class)
			}
		},
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := oldObj.(*nodev1.RuntimeClass)
			after, alsoOK := newObj.(*nodev1.RuntimeClass)
			if ok && alsoOK && before.Handler != after.Handler { // it was made anew
				wake(after)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching RuntimeClasses: %w", err)
	}
	return nil
}
