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
	return s.wait("pod "+pod.Name+" to be handed over", func() error {
		is, err := cluster.client.CoreV1().Pods(pod.Namespace).Get(s.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if by := metav1.GetControllerOf(is); by == nil || by.Kind != "Move" {
			return fmt.Errorf("it is of %v", by)
		}
		return nil
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
	return d.wait("an event of what has become of the Move", func() error {
		_, err := d.event(metav1.GetControllerOf(d.set).Name, "PodMoved")
		return err
	})
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
