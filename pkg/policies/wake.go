// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// wake puts the pods that have no node, and for which a change makes a difference,
// back into the scheduling queue. Pods that are not waiting the queue knows to
// leave alone, and one that is being tried at this moment it takes up once more
// if it is refused: it may have met what was known before.
//
// The caller has let go of the lock: the queue asks plugins on the way.
func (p *Policies) wake(concerns func(*corev1.Pod) bool) {
	// All pods, for want of an index by namespace in the scheduler's informer. A
	// policy changes when somebody edits it.
	pods, err := p.pods.List(labels.Everything())
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

// everyPod is concerned when anything is known for the first time.
func everyPod(*corev1.Pod) bool { return true }

// differently are the pods of a namespace that another policy governs than before,
// or the same one with another spec.
func differently(namespace string, before, after []*clusterview.Policy) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return pod.Namespace == namespace && clusterview.Governing(before, pod) != clusterview.Governing(after, pod)
	}
}
