// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owners reads the ReplicaSet and the Deployment that a pod is of. It is false for a pod of something else, and for one whose owners are gone.
func Owners(ctx context.Context, api client.Reader, pod *corev1.Pod) (set *appsv1.ReplicaSet, deployment *appsv1.Deployment, ok bool, err error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" {
		return nil, nil, false, nil
	}
	set, deployment = &appsv1.ReplicaSet{}, &appsv1.Deployment{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, set); err != nil {
		return nil, nil, false, client.IgnoreNotFound(err)
	}
	above := metav1.GetControllerOfNoCopy(set)
	if set.UID != owner.UID || above == nil || above.Kind != "Deployment" {
		return nil, nil, false, nil
	}
	if err := api.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: above.Name}, deployment); err != nil {
		return nil, nil, false, client.IgnoreNotFound(err)
	}
	return set, deployment, true, nil
}
