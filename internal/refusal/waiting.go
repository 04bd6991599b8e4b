// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Waiting puts pods that wait for a node back into the scheduling queue, when something changes for which the framework has no queueing
// hint of a plugin: a policy, or a field of a node that is none of its events.
//
// It remembers no pods. Such changes are rare, and then all pods are looked through.
type Waiting struct {
	lister corelisters.PodLister
	// activate puts pods into the queue, by their UIDs. The queue asks plugins meanwhile, so that whoever calls it must hold no lock of theirs.
	activate func(map[string]*corev1.Pod)
}

// NewWaiting returns what looks through the pods of a lister, and gives those to be woken to activate. WaitingOf is for plugins.
func NewWaiting(lister corelisters.PodLister, activate func(map[string]*corev1.Pod)) *Waiting {
	return &Waiting{lister: lister, activate: activate}
}

// WaitingOf returns what wakes the pods of the cluster in the queue of the handle's scheduler.
func WaitingOf(ctx context.Context, handle fwk.Handle) *Waiting {
	logger := klog.FromContext(ctx)
	return NewWaiting(handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		func(pods map[string]*corev1.Pod) { handle.Activate(logger, pods) })
}

// Wake puts the pods that have no node, and for which a change makes a difference,
// back into the scheduling queue. The queue leaves pods alone that it does not have. It tries a pod again that is being
// tried at this moment and is refused: that one may have been tried by what was known before.
//
// The caller must hold no lock that a plugin takes.
func (p *Waiting) Wake(concerns func(*corev1.Pod) bool) {
	// All pods, for want of an index of those without a node in the scheduler's informer.
	pods, err := p.lister.List(labels.Everything())
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	waiting := make(map[string]*corev1.Pod)
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && concerns(pod) {
			waiting[string(pod.UID)] = pod
		}
	}
	if len(waiting) > 0 {
		p.activate(waiting)
	}
}

// OnNodeUpdate wakes the pods that a node suits as it is now, and did not before.
// Changed reports whether a node has changed in a way that matters: kubelets report
// every few minutes, and mostly nothing new.
//
// The scheduler's cache may learn of the change after the pods are awake. A plugin that
// refuses a pod by the cache's node looks at the informer's node before it does.
func (p *Waiting) OnNodeUpdate(nodes cache.SharedInformer, changed func(before, after *corev1.Node) bool, suits func(*corev1.Pod, *corev1.Node) bool) error {
	_, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(oldObj, newObj any) {
			before, ok := oldObj.(*corev1.Node)
			after, alsoOK := newObj.(*corev1.Node)
			if ok && alsoOK && changed(before, after) {
				p.Wake(func(pod *corev1.Pod) bool { return suits(pod, after) && !suits(pod, before) })
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	return nil
}
