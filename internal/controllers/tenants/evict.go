// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
)

// maxAtOnce bounds the pods that are evicted at a look.
const maxAtOnce = 20

// evict evicts running pods that must not run, the last of the order first. Disruption budgets hold: the API server refuses what they do not
// let go, and it is tried again.
func (c *Controller) evict(ctx context.Context, order *allocations.Order) error {
	var errs []error
	left := maxAtOnce
	for _, q := range order.Queues {
		for i := len(q.Entries) - 1; i >= 0 && left > 0; i-- {
			e := &q.Entries[i]
			if !e.MustNotRun() || e.Object.Spec.NodeName == "" || e.Object.DeletionTimestamp != nil {
				continue
			}
			left--
			errs = append(errs, c.evictOne(ctx, e, allocations.Place{Queue: q, Index: i}.MustNotRun()))
		}
	}
	return errors.Join(errs...)
}

func (c *Controller) evictOne(ctx context.Context, e *allocations.Entry, why string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Object.Namespace, Name: e.Object.Name, UID: e.Object.UID}}
	eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
	err := c.Client.SubResource("eviction").Create(ctx, pod, eviction)
	switch {
	case apierrors.IsTooManyRequests(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // a budget holds it, or it is gone
	case err != nil:
		return fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	c.Events.Eventf(e.Object, nil, corev1.EventTypeNormal, "MustNotRun", "Evicting", "%s", why)
	return nil
}
