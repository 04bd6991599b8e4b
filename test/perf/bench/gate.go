// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A scheduler that waits to become the leader watches the API server and fills its
// queue, but schedules nothing. So who holds the Lease says when a scheduler begins:
// pods that all lie in its queue are bound as fast as it can, and not as fast as they
// are made.
const (
	leaseName      = "scheduler"
	leaseNamespace = crowdNamespace
	// leaseRetry is how often a scheduler asks for the Lease. It renews it as often,
	// which must not be much beside the binding.
	leaseRetry = time.Second
	// A scheduler that binds as fast as it can leaves the API server no time for its own
	// Lease, and would end without it. Nobody else wants it.
	leaseDuration = time.Hour
	leaseDeadline = leaseDuration - time.Minute
	// leaseSeconds is longer than any run takes to fill a queue.
	leaseSeconds = 24 * 60 * 60
)

const (
	pendingMetric = "scheduler_pending_pods"
	queueLimit    = 5 * time.Minute
)

// hold takes the Lease. No scheduler may be running.
func (w *World) hold(ctx context.Context) error {
	// What the one before has left is of no use: it would be valid for a while.
	if err := w.release(ctx); err != nil {
		return err
	}
	now := metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: leaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("the benchmark"), LeaseDurationSeconds: new(int32(leaseSeconds)), AcquireTime: &now, RenewTime: &now,
		},
	}
	if _, err := w.client.CoordinationV1().Leases(leaseNamespace).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("taking Lease %s/%s: %w", leaseNamespace, leaseName, err)
	}
	return nil
}

// release gives the Lease up.
func (w *World) release(ctx context.Context) error {
	err := w.client.CoordinationV1().Leases(leaseNamespace).Delete(ctx, leaseName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("giving up Lease %s/%s: %w", leaseNamespace, leaseName, err)
	}
	return nil
}

// queued waits until so many pods lie in a scheduler's queue.
func (w *World) queued(ctx context.Context, r *running, pods int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, queueLimit, fmt.Errorf("%s has not queued %d pods within %s; its log is %s", r.Name, pods, queueLimit, r.Log))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		select {
		case <-r.Done():
			return false, r.Err()
		default:
		}
		families, err := scrape(ctx, r.port+"/metrics")
		if err != nil {
			return false, nil //nolint:nilerr // It may not listen yet, and has until the limit.
		}
		pending := 0.0
		for _, queue := range families[pendingMetric].GetMetric() {
			pending += queue.GetGauge().GetValue()
		}
		return pending >= float64(pods), nil
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
