// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

// deployment is a Deployment with its ReplicaSet. No controllers are there: the test plays them, and the kubelets.
type deployment struct {
	*stage
	set *appsv1.ReplicaSet
}

// deploy makes a Deployment that is as its controller would leave it when it has all of its pods.
func (s *stage) deploy(name string, replicas int32) *deployment {
	s.Helper()
	ctx, apps, selected := s.Context(), cluster.client.AppsV1(), map[string]string{"app": name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selected}, Spec: s.pod("").Spec}
	revision := map[string]string{"deployment.kubernetes.io/revision": "1"}
	d, err := apps.Deployments(s.name).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: revision},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selected}, Template: template},
	}, metav1.CreateOptions{})
	s.must(err)
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas}
	_, err = apps.Deployments(s.name).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	s.must(err)
	set, err := apps.ReplicaSets(s.name).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-1", Annotations: revision, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: d.Spec.Selector, Template: template},
	}, metav1.CreateOptions{})
	s.must(err)
	return &deployment{s, set}
}

// runs makes a pod that runs on a node, and is ready.
func (d *deployment) runs(node string, change ...func(*corev1.Pod)) *corev1.Pod {
	d.Helper()
	return d.runsOf(d.set, "ReplicaSet", d.set.Spec.Template.Labels, node, change...)
}

// runsOf makes a pod of an owner that runs on a node, and is ready.
func (s *stage) runsOf(owner metav1.Object, kind string, labels map[string]string, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	s.Helper()
	pod := s.pod("")
	pod.GenerateName, pod.Labels = owner.GetName()+"-", labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}
	pod.Spec.NodeName, pod.Spec.NodeSelector = node, nil
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0) // nobody ends it
	for _, c := range change {
		c(pod)
	}
	created := s.create(pod)
	s.status(created, `{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now()+`"}]}`)
	return created
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// handedOver waits until a pod is a Move's.
func (s *stage) handedOver(pod *corev1.Pod) error {
	return sees(s, "pod "+pod.Name+" to be handed over", cluster.client.CoreV1().Pods(pod.Namespace).Get, pod.Name, func(now *corev1.Pod) bool {
		by := metav1.GetControllerOf(now)
		return by != nil && by.Kind == "Move"
	})
}

// gone waits until a pod is gone.
func (s *stage) gone(pod *corev1.Pod) error {
	return s.wait("pod "+pod.Name+" to be evicted", func() error {
		_, err := cluster.client.CoreV1().Pods(pod.Namespace).Get(s.Context(), pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// evicted waits until a pod is gone, and until the Deployment is told.
func (d *deployment) evicted(pod *corev1.Pod) error {
	if err := d.gone(pod); err != nil {
		return err
	}
	return d.told(metav1.GetControllerOf(d.set).Name, "PodMoved")
}

// forgotten waits until a Move that has ended long ago is gone.
func (s *stage) forgotten(pod *corev1.Pod) error {
	moves := s.resource("moves").Namespace(s.name)
	_, err := moves.Patch(s.Context(), pod.Name, mergePatch, []byte(`{"status":{"endedAt":"2026-01-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	s.must(err)
	return s.wait("the Move to be gone", func() error {
		is, err := moves.Get(s.Context(), pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("it is there, with the finalizers %v", finalizers(is)), err)
	})
}

func finalizers(of *unstructured.Unstructured) []string {
	if of == nil {
		return nil
	}
	return of.GetFinalizers()
}

// replaced goes on from a pod that is about to be moved to the end of the Move: another one runs elsewhere, and between does what must be
// before the pod is evicted.
func (d *deployment) replaced(pod *corev1.Pod, node string, between func()) error {
	if err := d.handedOver(pod); err != nil {
		return err
	}
	d.runs(node)
	between()
	if err := d.evicted(pod); err != nil {
		return err
	}
	return d.forgotten(pod)
}

// twoNodes makes two nodes in zones of their own.
func (s *stage) twoNodes() (from, to string) {
	s.Helper()
	from, to = s.name+"-from", s.name+"-to"
	for _, name := range []string{from, to} {
		s.node(name)
		s.patchNode(name, `{"metadata":{"labels":{"topology.kubernetes.io/zone":"`+name+`"}}}`)
	}
	return from, to
}

// patchNode changes a node, or one of its subresources.
func (s *stage) patchNode(name, patch string, subresources ...string) {
	s.Helper()
	_, err := cluster.client.CoreV1().Nodes().Patch(context.WithoutCancel(s.Context()), name, mergePatch, []byte(patch), metav1.PatchOptions{}, subresources...)
	s.must(err)
}

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
