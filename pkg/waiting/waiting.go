// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waiting puts pods that wait for a node back into the scheduling queue when
// something changes of which the framework has no event.
//
// It remembers no pods: such changes are rare, and then all pods are looked through.
package waiting

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

// Pods are the pods of a cluster, as far as they wait.
type Pods struct {
	lister   corelisters.PodLister
	activate func(map[string]*corev1.Pod)
}

// New returns the pods of a lister, which activate puts into the queue.
func New(lister corelisters.PodLister, activate func(map[string]*corev1.Pod)) *Pods {
	return &Pods{lister: lister, activate: activate}
}

// Of returns the pods of the scheduler that the handle belongs to.
func Of(ctx context.Context, handle fwk.Handle) *Pods {
	logger := klog.FromContext(ctx)
	return New(handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		func(pods map[string]*corev1.Pod) { handle.Activate(logger, pods) })
}

// Wake puts the pods that have no node, and for which a change makes a difference,
// back into the scheduling queue. Pods that are not waiting the queue knows to
// leave alone, and one that is being tried at this moment it takes up once more
// if it is refused: it may have met what was known before.
//
// The caller holds no lock that a plugin takes: the queue asks plugins on the way.
func (p *Pods) Wake(concerns func(*corev1.Pod) bool) {
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
// Changed says whether a node has changed in a way that matters: kubelets report
// every few minutes, and mostly nothing new.
//
// The scheduler's cache may learn of the change after the pods are awake. Who refuses
// a pod for what the cache has of a node looks at the informer's before that.
func (p *Pods) OnNodeUpdate(nodes cache.SharedInformer, changed func(before, after *corev1.Node) bool, suits func(*corev1.Pod, *corev1.Node) bool) error {
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
