// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/controllers/tenants"
	"github.com/espalier-scheduler/espalier/internal/upstream/filters"
)

// prepare makes what is asked which nodes take a pod, once for all pods.
func (l *look) prepare(ctx context.Context) error {
	if l.filters != nil {
		return nil
	}
	var namespaces corev1.NamespaceList
	if err := l.Client.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing namespaces: %w", err)
	}
	known := make([]*corev1.Namespace, len(namespaces.Items))
	for i := range namespaces.Items {
		known[i] = &namespaces.Items[i]
	}
	l.claims = allocations.NewTree(nil, nil).Claims(nil) // by which all pods are of none
	var err error
	if l.Allocations {
		if l.claims, err = tenants.Claims(ctx, l.Client, namespaces.Items); err != nil {
			return err
		}
	}
	l.filters, err = filters.New(ctx, l.nodes, l.pods, known)
	return err
}

// allowing tells which nodes a pod's allocation allows. It asks what the scheduler's plugin AllocationOrder asks: that has pods of none go
// everywhere, and holds those of a namespace that it does not know, and those that Check refuses.
func allowing(claims *allocations.Claims, pod *corev1.Pod) func(*corev1.Node) bool {
	claim, known := claims.Of(pod)
	if known && claim.Allocation == nil {
		return func(*corev1.Node) bool { return true }
	}
	if !known || claims.Check(pod, claim.Allocation) != nil {
		return func(*corev1.Node) bool { return false }
	}
	return func(n *corev1.Node) bool { return claims.Allows(claim.Allocation, n) }
}
