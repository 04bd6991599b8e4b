// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// familyIndex finds pods by clusterview.Family. The scheduler's informer has no index.
const familyIndex = "espalier/family/"

// familyIndexer indexes the pods of one scheduler: of a large cluster's pods, most are
// another's.
func familyIndexer(schedulerName string) cache.Indexers {
	return cache.Indexers{familyIndex + schedulerName: func(obj any) ([]string, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Spec.SchedulerName != schedulerName {
			return nil, nil
		}
		return []string{clusterview.Family(pod)}, nil
	}}
}

// index adds the index of a scheduler's pods to an informer that may have it.
func index(informer cache.SharedIndexInformer, schedulerName string) error {
	indexers := familyIndexer(schedulerName)
	for name := range informer.GetIndexer().GetIndexers() {
		if _, ok := indexers[name]; ok {
			return nil
		}
	}
	if err := informer.AddIndexers(indexers); err != nil {
		return fmt.Errorf("indexing pods: %w", err)
	}
	return nil
}

// newEndedPods returns an informer of the pods of one scheduler that have succeeded or
// failed. The scheduler's own informer leaves them out: there, a pod that ends is one
// that is deleted, as it was before.
func newEndedPods(client kubernetes.Interface, schedulerName string) (cache.SharedIndexInformer, error) {
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector("spec.schedulerName", schedulerName),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodPending)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodRunning)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodUnknown)),
	).String()
	informer := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, familyIndexer(schedulerName),
		func(options *metav1.ListOptions) { options.FieldSelector = selector })
	return informer, informer.SetTransform(trim)
}

// trim leaves of a pod what its identity and its outcome are read from: a cluster keeps
// thousands that have ended.
func trim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	m, spec := &pod.ObjectMeta, &pod.Spec
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels,
			OwnerReferences: m.OwnerReferences, CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			SchedulerName: spec.SchedulerName, SchedulingGroup: spec.SchedulingGroup, NodeName: spec.NodeName, Affinity: spec.Affinity,
			Resources: spec.Resources, InitContainers: limits(spec.InitContainers), Containers: limits(spec.Containers),
		},
		Status: pod.Status,
	}, nil
}

// limits leaves of containers what tells whether an end was their own.
func limits(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(containers))
	for i, c := range containers {
		out[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}
