// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// A replacement may take so long until it has become ready, and as long on top as its ReplicaSet wants pods to have been ready. The API server takes
// no longer deadline.
const (
	startSeconds    = 600
	deadlineSeconds = 86400
)

// New returns a Move of a pod, with the pod's name, and after others of it with their number too. It goes with the Deployment.
func New(pod *corev1.Pod, set *appsv1.ReplicaSet, deployment *appsv1.Deployment, reason placementv1alpha1.MoveReason, before History) *placementv1alpha1.Move {
	name := pod.Name
	if before.next > 0 {
		name = fmt.Sprintf("%s-%d", name, before.next)
	}
	return &placementv1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: name, Finalizers: []string{finalizer}, OwnerReferences: []metav1.OwnerReference{controllerOf(deployment)},
		},
		Spec: placementv1alpha1.MoveSpec{
			Pod:        placementv1alpha1.ObjectReference{Name: pod.Name, UID: string(pod.UID)},
			ReplicaSet: placementv1alpha1.ObjectReference{Name: set.Name, UID: string(set.UID)},
			Reason:     reason,

			DeadlineSeconds: startSeconds + min(set.Spec.MinReadySeconds, deadlineSeconds-startSeconds),
		},
	}
}

// Move returns a Move of a pod of the owner, as New does. One that evicts first holds nothing, so nothing waits for it at its end.
func (o *Owner) Move(pod *corev1.Pod, reason placementv1alpha1.MoveReason, before History) *placementv1alpha1.Move {
	if !o.EvictFirst {
		return New(pod, o.Set, o.Deployment, reason, before)
	}
	kind, top := o.Top()
	m := &placementv1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, OwnerReferences: []metav1.OwnerReference{controlledBy(kind, top)}},
		Spec: placementv1alpha1.MoveSpec{
			Pod: placementv1alpha1.ObjectReference{Name: pod.Name, UID: string(pod.UID)}, Reason: reason, EvictFirst: new(true),
			DeadlineSeconds: startSeconds,
		},
	}
	direct := placementv1alpha1.ObjectReference{Name: o.direct().GetName(), UID: string(o.direct().GetUID())}
	if o.StatefulSet != nil {
		m.Spec.StatefulSet = direct
	} else {
		m.Spec.ReplicaSet = direct
	}
	if m.Name = firstName(&m.Spec); before.next > 0 {
		m.Name = fmt.Sprintf("%s-%d", m.Name, before.next)
	}
	return m
}

// firstName is the name of the first Move of a pod: the pod's own, and with a part of its UID for a pod of a StatefulSet, whose successors have the same
// name.
func firstName(spec *placementv1alpha1.MoveSpec) string {
	if spec.StatefulSet.UID == "" {
		return spec.Pod.Name
	}
	part, _, _ := strings.Cut(spec.Pod.UID, "-")
	return spec.Pod.Name + "-" + part
}

// controllerOf is a Deployment as the controller of a Move.
func controllerOf(d *appsv1.Deployment) metav1.OwnerReference { return controlledBy("Deployment", d) }

// controlledBy is a workload as the controller of a Move.
func controlledBy(kind string, of client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Name: of.GetName(), UID: of.GetUID(), Controller: new(true)}
}

// HostOf is the node of a pod as a domain, for a replacement that must not be there. It is false if the node is gone.
func HostOf(ctx context.Context, api client.Reader, pod *corev1.Pod) (host *placementv1alpha1.Domain, ok bool, err error) {
	node, err := nodeOf(ctx, api, pod)
	if node == nil || err != nil {
		return nil, false, err
	}
	value := clusterview.DomainOf(node, corev1.LabelHostname)
	return &placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname, Value: &value}, true, nil
}

// Make makes a Move, and reports whether it did. It does not if there is one of that name, nor if another controller has made one since the
// count was taken: whoever called looks again soon, and counts that one.
func (c *Count) Make(ctx context.Context, to client.Writer, move *placementv1alpha1.Move) (is bool, err error) {
	making.Lock()
	defer making.Unlock()
	if c.stale() {
		return false, nil
	}
	if err := to.Create(ctx, move); apierrors.IsAlreadyExists(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("making a Move for pod %s/%s: %w", move.Namespace, move.Spec.Pod.Name, err)
	}
	made++
	c.of = made
	return true, nil
}
