// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statefulSet is a StatefulSet of one pod. The test plays its controller.
type statefulSet struct {
	*stage
	set *appsv1.StatefulSet
}

// stateful makes a StatefulSet that is as its controller would leave it when it has its pod.
func (s *stage) stateful(name string) *statefulSet {
	s.Helper()
	selected := map[string]string{"app": name}
	set, err := cluster.client.AppsV1().StatefulSets(s.name).Create(s.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: selected},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected}, Spec: s.pod("").Spec},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, CurrentRevision: "1", UpdateRevision: "1"}
	set, err = cluster.client.AppsV1().StatefulSets(s.name).UpdateStatus(s.Context(), set, metav1.UpdateOptions{})
	s.must(err)
	return &statefulSet{s, set}
}

// runs makes the pod, which is ready on a node.
func (s *statefulSet) runs(node string, change ...func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	return s.runsOf(s.set, "StatefulSet", s.set.Spec.Template.Labels, node, change...)
}

// movedByHand runs a pod on a node, makes a Move of it as somebody else does, and waits until the pod is gone. Whatever has Moves made, all are carried
// out.
func (s *statefulSet) movedByHand(node string) error {
	s.Helper()
	pod := s.runs(node)
	reference := func(o metav1.Object) map[string]any {
		return map[string]any{"name": o.GetName(), "uid": string(o.GetUID())}
	}
	s.object("Move", "by-hand", map[string]any{"pod": reference(pod), "statefulSet": reference(s.set), "evictFirst": true, "reason": "Lease"})
	return s.gone(pod)
}

// sharing makes a claim that pods of many nodes can have, and gives it to a pod: whether another one can be ready beside it is to be read there.
func (s *stage) sharing(name string) func(*corev1.Pod) {
	s.Helper()
	made(s, cluster.client.CoreV1().PersistentVolumeClaims(s.name).Create, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Resources: corev1.VolumeResourceRequirements{Requests: oneGigabyte},
		},
	})
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}
