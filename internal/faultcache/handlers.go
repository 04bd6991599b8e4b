// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
)

// handle adds the cache's handlers to the informers.
func (c *Cache) handle() error {
	add := func(what string, informer cache.SharedInformer, handler cache.ResourceEventHandler) error {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching %s: %w", what, err)
		}
		return nil
	}
	pods := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.onPod(obj) },
		UpdateFunc: func(_, obj any) { c.onPod(obj) },
		DeleteFunc: c.onPodGone,
	}
	if err := add("pods", c.pods, pods); err != nil {
		return err
	}
	if c.ended != nil {
		// One that is deleted has ended all the same.
		pods.DeleteFunc = nil
		if err := add("pods that have ended", c.ended, pods); err != nil {
			return err
		}
	}
	if err := add("nodes", c.Informers.Core().V1().Nodes().Informer(), cache.ResourceEventHandlerFuncs{
		UpdateFunc: c.onNode, DeleteFunc: c.onNodeGone,
	}); err != nil {
		return err
	}
	return add("ReplicaSets", c.Informers.Apps().V1().ReplicaSets().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.onReplicaSet(nil, obj) }, UpdateFunc: c.onReplicaSet, DeleteFunc: c.onReplicaSetGone,
	})
}

// concerns reports whether the fate of a pod is held against its node: it is placed by
// this scheduler, and was not preassigned.
func (c *Cache) concerns(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == c.options.SchedulerName && !clusterview.Preassigned(pod)
}

func (c *Cache) onPod(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || !c.concerns(pod) {
		return
	}
	failures := podoutcome.Failures(pod)
	c.lock()
	defer c.mu.Unlock()
	if c.begun {
		c.observePod(pod, failures)
	}
}

// onPodGone is called for pods that are deleted, and for those that end.
func (c *Cache) onPodGone(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok || !c.concerns(pod) {
		return
	}
	now := c.lock()
	defer c.mu.Unlock()
	c.unassume(pod)
	t, ok := c.podStates[pod.UID]
	if !ok {
		return
	}
	if pod.DeletionTimestamp == nil && c.ended != nil {
		// Most likely it has ended, and the other informer is about to say how. Until
		// then nothing is proven.
		t.proof, t.leaving = time.Time{}, now.Add(untilEnded)
		c.wake()
		return
	}
	c.gone(t)
}

// onWarning is called for a kubelet's warning about a pod.
func (c *Cache) onWarning(event *corev1.Event) {
	f, ok := podoutcome.EventFailure(event)
	if !ok {
		return
	}
	pod := c.find(&event.InvolvedObject)
	if pod == nil || !c.concerns(pod) {
		return
	}
	// The binding may be news to come yet: the kubelet knows its own name.
	node := cmp.Or(pod.Spec.NodeName, event.Source.Host)
	c.lock()
	defer c.mu.Unlock()
	c.observeWarning(pod, node, f)
}

// find returns the pod that a reference is to, nil if no informer has it.
func (c *Cache) find(of *corev1.ObjectReference) *corev1.Pod {
	key := cache.NewObjectName(of.Namespace, of.Name).String()
	for _, informer := range []cache.SharedIndexInformer{c.pods, c.ended} {
		if informer == nil {
			continue
		}
		obj, exists, err := informer.GetIndexer().GetByKey(key)
		if err != nil || !exists {
			continue
		}
		if pod, ok := obj.(*corev1.Pod); ok && pod.UID == of.UID {
			return pod
		}
	}
	return nil
}

// onNode looks at whether somebody says that he has mended the node.
func (c *Cache) onNode(before, after any) {
	b, ok := before.(*corev1.Node)
	a, alsoOK := after.(*corev1.Node)
	if ok && alsoOK && b.UID != a.UID {
		// It went and came back unseen.
		c.onNodeGone(a)
		return
	}
	if !ok || !alsoOK || b.Annotations[clusterview.FailuresForgivenAnnotation] == a.Annotations[clusterview.FailuresForgivenAnnotation] {
		return
	}
	at := c.forgiven(a.Name)
	if at.IsZero() {
		return
	}
	c.lock()
	defer c.mu.Unlock()
	c.ledger.Forgive(a.Name, at)
	c.wake()
}

func (c *Cache) onNodeGone(obj any) {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	c.forgivenAt.forget(name)
	c.lock()
	defer c.mu.Unlock()
	c.forgetNode(name)
}

// onReplicaSet tells of the pods of a ReplicaSet anew: those that were seen before it,
// and those that change their workload with it.
func (c *Cache) onReplicaSet(before, after any) {
	rs, ok := after.(*appsv1.ReplicaSet)
	if !ok {
		return
	}
	if old, ok := before.(*appsv1.ReplicaSet); ok &&
		equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(rs)) {
		return
	}
	c.lock()
	defer c.mu.Unlock()
	if !c.begun {
		return
	}
	c.observeFamily(clusterview.Family(podOf(rs)))
}

// onReplicaSetGone notes of revisions that no pod will be made of them any more. Of a
// workload that is named by a label others may make some.
func (c *Cache) onReplicaSetGone(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	rs, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return
	}
	c.lock()
	defer c.mu.Unlock()
	for _, t := range c.tracked {
		if t.family == string(rs.UID) {
			t.orphaned = true
		}
	}
}

// replicaSets are the UIDs of those that there are.
func (c *Cache) replicaSets() map[string]bool {
	uids := make(map[string]bool)
	for _, obj := range c.Informers.Apps().V1().ReplicaSets().Informer().GetStore().List() {
		if rs, ok := obj.(*appsv1.ReplicaSet); ok {
			uids[string(rs.UID)] = true
		}
	}
	return uids
}

// isOfReplicaSet reports whether the pods of a revision are all of one ReplicaSet, whose
// UID is the family then. Others name the family themselves, or are owned otherwise.
func (t *tracked) isOfReplicaSet() bool {
	kind := t.regarding.GroupVersionKind().GroupKind()
	named := strings.Contains(t.family, "/")
	return !named && kind.Group == appsv1.GroupName && (kind.Kind == "Deployment" || kind.Kind == "ReplicaSet")
}

// podOf is a pod of a ReplicaSet, as far as its family goes.
func podOf(rs *appsv1.ReplicaSet) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rs.Namespace, Labels: rs.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{{UID: rs.UID, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{SchedulingGroup: rs.Spec.Template.Spec.SchedulingGroup},
	}
}
