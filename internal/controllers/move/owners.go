// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Owner is what a pod is of that may be moved.
type Owner struct {
	// Set is the ReplicaSet, and Deployment what that is of, nil if it is of nothing. Both are nil for a pod of a StatefulSet.
	Set         *appsv1.ReplicaSet
	Deployment  *appsv1.Deployment
	StatefulSet *appsv1.StatefulSet
	// EvictFirst says that no other pod can be ready beside this one before it is evicted.
	EvictFirst bool
}

// Owners reads the ReplicaSet and the Deployment that a pod is of. It is false for a pod of something else, and for one whose owners are gone.
func Owners(ctx context.Context, api client.Reader, pod *corev1.Pod) (set *appsv1.ReplicaSet, deployment *appsv1.Deployment, ok bool, err error) {
	o, ok, err := ownerOf(ctx, api, pod)
	if !ok || err != nil || o.Deployment == nil {
		return nil, nil, false, err
	}
	return o.Set, o.Deployment, true, nil
}

// ownerOf reads what a pod is of. It is false for a pod of something else, for one whose owners are gone, and for one of a ReplicaSet that is somebody
// else's than a Deployment's. It does not look at the volumes of the pod.
func ownerOf(ctx context.Context, api client.Reader, pod *corev1.Pod) (o Owner, ok bool, err error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return Owner{}, false, nil
	}
	by := placementv1alpha1.ObjectReference{Name: owner.Name, UID: string(owner.UID)}
	switch owner.Kind {
	case "StatefulSet":
		o.StatefulSet, o.EvictFirst = &appsv1.StatefulSet{}, true
		ok, err = get(ctx, api, o.StatefulSet, pod.Namespace, by)
		return o, ok, err
	case "ReplicaSet":
		o.Set = &appsv1.ReplicaSet{}
		if ok, err = get(ctx, api, o.Set, pod.Namespace, by); !ok || err != nil {
			return Owner{}, false, err
		}
	default:
		return Owner{}, false, nil
	}
	above := metav1.GetControllerOfNoCopy(o.Set)
	switch {
	case above == nil:
		o.EvictFirst = true
		return o, true, nil
	case above.Kind != "Deployment":
		return Owner{}, false, nil
	}
	o.Deployment = &appsv1.Deployment{}
	ok, err = get(ctx, api, o.Deployment, pod.Namespace, placementv1alpha1.ObjectReference{Name: above.Name, UID: string(above.UID)})
	o.EvictFirst = Surge(o.Deployment) < 1
	return o, ok, err
}

// direct is the controller of the pod.
func (o *Owner) direct() client.Object {
	if o.StatefulSet != nil {
		return o.StatefulSet
	}
	return o.Set
}

// replicas is how many pods it wants.
func (o *Owner) replicas() int32 {
	if o.StatefulSet != nil {
		return ptr.Deref(o.StatefulSet.Spec.Replicas, 1)
	}
	return ptr.Deref(o.Set.Spec.Replicas, 1)
}

// ready is how many of its pods are ready, by its status.
func (o *Owner) ready() int32 {
	if o.StatefulSet != nil {
		return o.StatefulSet.Status.ReadyReplicas
	}
	return o.Set.Status.ReadyReplicas
}

// Top is the object by which people know the pods, and its kind.
func (o *Owner) Top() (kind string, object client.Object) {
	switch {
	case o.StatefulSet != nil:
		return "StatefulSet", o.StatefulSet
	case o.Deployment != nil:
		return "Deployment", o.Deployment
	}
	return "ReplicaSet", o.Set
}
