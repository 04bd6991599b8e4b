// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
)

// maxAtOnce bounds the pods of which eviction is tried at a look.
const maxAtOnce = 20

// evict evicts running pods that must not run, the last of the order first. Disruption budgets hold: the API server refuses what they do not
// let go. Such a pod is tried again after those that were tried less recently: however many there are, they keep nobody else.
func (c *Controller) evict(ctx context.Context, order *allocations.Order) error {
	var all []allocations.Place
	tried := make(map[types.UID]int64)
	for _, q := range order.Queues {
		for i := range slices.Backward(q.Entries) {
			if e := &q.Entries[i]; e.MustNotRun() && e.Object.Spec.NodeName != "" && e.Object.DeletionTimestamp == nil {
				all = append(all, allocations.Place{Queue: q, Index: i})
				tried[e.Object.UID] = c.tried[e.Object.UID]
			}
		}
	}
	slices.SortStableFunc(all, func(a, b allocations.Place) int {
		return cmp.Compare(tried[a.Entry().Object.UID], tried[b.Entry().Object.UID])
	})
	c.looks++
	var errs []error
	for _, at := range all[:min(len(all), maxAtOnce)] {
		tried[at.Entry().Object.UID] = c.looks
		errs = append(errs, c.evictOne(ctx, at.Entry(), at.MustNotRun()))
	}
	c.tried = tried
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
