// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// IsReady reports whether a pod is ready, and is not to end.
func IsReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// TakesPods says why a node takes no pods, and nil if it is ready and has no taint.
func TakesPods(n *corev1.Node) error {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready || len(n.Spec.Taints) > 0 {
		return fmt.Errorf("node %s is ready: %t, its taints are %v", n.Name, ready, n.Spec.Taints)
	}
	return nil
}

// UpToDate says why a Deployment is not through with its newest revision, and nil if it is.
func UpToDate(d *appsv1.Deployment) error {
	want, is := *d.Spec.Replicas, d.Status
	if is.ObservedGeneration < d.Generation || is.UpdatedReplicas != want || is.Replicas != want || is.AvailableReplicas != want {
		return fmt.Errorf("of %d pods wanted there are %d, %d of them updated, %d available, as its controller saw it in generation %d of %d",
			want, is.Replicas, is.UpdatedReplicas, is.AvailableReplicas, is.ObservedGeneration, d.Generation)
	}
	return nil
}

// Holder is who holds the scheduler's Lease. It is an error if nobody does, or this other one.
func Holder(ctx context.Context, client kubernetes.Interface, other string) (string, error) {
	lease, err := client.CoordinationV1().Leases(SchedulerNamespace).Get(ctx, SchedulerName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == "" || holder == other {
		return "", fmt.Errorf("the Lease is held by %q", holder)
	}
	return holder, nil
}
