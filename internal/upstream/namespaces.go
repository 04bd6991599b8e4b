// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
)

// affinityAgain has the queue ask InterPodAffinity alone about the pods that it has refused, which says that each may pass now. It is the event that
// they got other labels. Of other plugins none finds that anything has changed between twice the same pod. Their back-off is kept.
var affinityAgain = fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodLabel}

// seeNamespaces returns the queue of a scheduler that is not running yet, such that a waiting pod hears of pods in namespaces that its inter-pod
// affinity selects by their labels, or its anti-affinity, and of other labels of namespaces.
//
// What InterPodAffinity says about such events knows no labels of namespaces. So it finds none selected, and the pod that another one helps waits for
// the next event that helps it, or for five minutes.
func seeNamespaces(ctx context.Context, queue internalqueue.SchedulingQueue, namespaces coreinformers.NamespaceInformer) (internalqueue.SchedulingQueue, error) {
	q := &seeingQueue{SchedulingQueue: queue, namespaces: namespaces.Lister(), selecting: make(map[types.UID]fwk.PodInfo)}
	_, err := namespaces.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, first bool) {
			if !first {
				q.relabelled(klog.FromContext(ctx), &corev1.Namespace{}, obj.(*corev1.Namespace))
			}
		},
		UpdateFunc: func(before, after any) {
			q.relabelled(klog.FromContext(ctx), before.(*corev1.Namespace), after.(*corev1.Namespace))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("following the labels of namespaces: %w", err)
	}
	return q, nil
}

// seeingQueue is a queue that has pods tried again for which InterPodAffinity would need the labels of namespaces.
type seeingQueue struct {
	internalqueue.SchedulingQueue
	namespaces corelisters.NamespaceLister

	mu sync.Mutex // guards selecting
	// selecting are the pods without a node that select namespaces, in the queue or being tried.
	selecting map[types.UID]fwk.PodInfo
}

// Add, Update and Delete are told of each pod without a node; Delete also when it gets one.
func (q *seeingQueue) Add(ctx context.Context, pod *corev1.Pod) {
	q.note(pod)
	q.SchedulingQueue.Add(ctx, pod)
}

// Update is beside Add.
func (q *seeingQueue) Update(ctx context.Context, oldPod, newPod *corev1.Pod) {
	q.note(newPod)
	q.SchedulingQueue.Update(ctx, oldPod, newPod)
}

// Delete is beside Add.
func (q *seeingQueue) Delete(logger klog.Logger, pod *corev1.Pod) {
	q.mu.Lock()
	delete(q.selecting, pod.UID)
	q.mu.Unlock()
	q.SchedulingQueue.Delete(logger, pod)
}

func (q *seeingQueue) note(pod *corev1.Pod) {
	if !selects(fwk.GetPodAffinityTerms(pod.Spec.Affinity)) && !selects(fwk.GetPodAntiAffinityTerms(pod.Spec.Affinity)) {
		return
	}
	// The API server lets no selector stand that cannot be read.
	if info, err := framework.NewPodInfo(pod); err == nil {
		q.mu.Lock()
		q.selecting[pod.UID] = info
		q.mu.Unlock()
	}
}

// selects reports whether a term selects namespaces by their labels. An empty selector selects all, which InterPodAffinity knows.
func selects(terms []corev1.PodAffinityTerm) bool {
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return t.NamespaceSelector != nil && len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) > 0
	})
}

// MoveAllToActiveOrBackoffQueue moves the waiting pods that an event may help, those that select namespaces too.
func (q *seeingQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any, preCheck internalqueue.PreEnqueueCheck) {
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, preCheck)
	if event.Resource != fwk.AssignedPod || event.ActionType&(fwk.Add|fwk.Delete|fwk.UpdatePodLabel) == 0 {
		return // nothing that a term asks for has changed: so it is when a kubelet writes the status of a pod, which is most events
	}
	before, _ := oldObj.(*corev1.Pod)
	after, _ := newObj.(*corev1.Pod)
	helped := q.helped(logger, before, after)
	keptOff := q.keptOff(logger, before, after)
	if helped.Len() == 0 && keptOff == nil {
		return
	}
	q.again(logger, func(pod *corev1.Pod) bool {
		return (helped.Has(pod.UID) || keptOff != nil && keptOff(pod)) && (preCheck == nil || preCheck(pod))
	})
}

// again has waiting pods tried again that InterPodAffinity has refused, and all those that are being tried.
func (q *seeingQueue) again(logger klog.Logger, which internalqueue.PreEnqueueCheck) {
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, affinityAgain, &corev1.Pod{}, &corev1.Pod{}, which)
}

// helped are the pods that select namespaces and have now, of a pod that came, went or was labelled, what they waited for: all that their affinity
// asks for, or less of what their anti-affinity forbids.
func (q *seeingQueue) helped(logger klog.Logger, before, after *corev1.Pod) sets.Set[types.UID] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.selecting) == 0 {
		return nil
	}
	helped := sets.New[types.UID]()
	was, is := q.labelled(logger, before), q.labelled(logger, after)
	for uid, info := range q.selecting {
		near, far := info.GetRequiredAffinityTerms(), info.GetRequiredAntiAffinityTerms()
		if is.all(near) && !was.all(near) || was.any(far) && !is.any(far) {
			helped.Insert(uid)
		}
	}
	return helped
}

// keptOff returns which pods one that is gone kept off by an anti-affinity that selects namespaces, nil if it had none.
func (q *seeingQueue) keptOff(logger klog.Logger, before, after *corev1.Pod) func(*corev1.Pod) bool {
	if before == nil || after != nil || !selects(fwk.GetPodAntiAffinityTerms(before.Spec.Affinity)) {
		return nil
	}
	info, err := framework.NewPodInfo(before)
	if err != nil {
		return nil // as in note
	}
	return func(pod *corev1.Pod) bool { return q.labelled(logger, pod).any(info.GetRequiredAntiAffinityTerms()) }
}

// labelledPod is a pod, nil for none, with the labels of its namespace.
type labelledPod struct {
	pod       *corev1.Pod
	namespace labels.Set
}

func (q *seeingQueue) labelled(logger klog.Logger, pod *corev1.Pod) labelledPod {
	if pod == nil {
		return labelledPod{}
	}
	return labelledPod{pod, interpodaffinity.GetNamespaceLabelsSnapshot(logger, pod.Namespace, q.namespaces)}
}

// all reports whether the pod is there and matches all terms, of which there are some.
func (p labelledPod) all(terms []fwk.AffinityTerm) bool {
	return len(terms) > 0 && p.pod != nil && !slices.ContainsFunc(terms, func(t fwk.AffinityTerm) bool { return !t.Matches(p.pod, p.namespace) })
}

// any reports whether the pod is there and matches a term.
func (p labelledPod) any(terms []fwk.AffinityTerm) bool {
	return p.pod != nil && slices.ContainsFunc(terms, func(t fwk.AffinityTerm) bool { return t.Matches(p.pod, p.namespace) })
}

// relabelled has the pods tried again for which other labels of a namespace may matter: those that select namespaces, and those in the namespace,
// which others may keep off no longer. InterPodAffinity does not hear of namespaces. One that is new to the scheduler had no labels before: its first
// pods may have been seen already.
func (q *seeingQueue) relabelled(logger klog.Logger, before, after *corev1.Namespace) {
	if equality.Semantic.DeepEqual(before.Labels, after.Labels) {
		return
	}
	q.mu.Lock()
	selecting := sets.KeySet(q.selecting)
	q.mu.Unlock()
	q.again(logger, func(pod *corev1.Pod) bool { return pod.Namespace == after.Name || selecting.Has(pod.UID) })
}
