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

// Waiting are the pods of a cluster that wait for a node. They are put back into the scheduling
// queue when something changes of which the framework has no event.
//
// It remembers no pods: such changes are rare, and then all pods are looked through.
type Waiting struct {
	lister   corelisters.PodLister
	activate func(map[string]*corev1.Pod)
}

// NewWaiting returns the pods of a lister, which activate puts into the queue.
func NewWaiting(lister corelisters.PodLister, activate func(map[string]*corev1.Pod)) *Waiting {
	return &Waiting{lister: lister, activate: activate}
}

// WaitingOf returns the pods of the scheduler that the handle belongs to.
func WaitingOf(ctx context.Context, handle fwk.Handle) *Waiting {
	logger := klog.FromContext(ctx)
	return NewWaiting(handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		func(pods map[string]*corev1.Pod) { handle.Activate(logger, pods) })
}

// Wake puts the pods that have no node, and for which a change makes a difference,
// back into the scheduling queue. Pods that are not waiting the queue knows to
// leave alone, and one that is being tried at this moment it takes up once more
// if it is refused: it may have met what was known before.
//
// The caller holds no lock that a plugin takes: the queue asks plugins on the way.
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
