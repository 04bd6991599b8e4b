// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Reconciler writes the statuses of the policies of one namespace at a time: a
// policy's status depends on all others beside it.
type Reconciler struct {
	// Client reads from a cache and writes to the API server.
	Client client.Client
	// Schedulers are the schedulerNames of the pods that policies are for.
	Schedulers []string
	Clock      clock.PassiveClock
}

// Reconcile brings the statuses of the request's namespace up to date; its name says nothing.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	in := client.InNamespace(request.Namespace)
	var policies placementv1alpha1.PlacementPolicyList
	if err := r.Client.List(ctx, &policies, in); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing PlacementPolicies of namespace %q: %w", request.Namespace, err)
	}
	if len(policies.Items) == 0 {
		return ctrl.Result{}, nil
	}
	var all corev1.PodList
	if err := r.Client.List(ctx, &all, in); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing pods of namespace %q: %w", request.Namespace, err)
	}
	var pods []corev1.Pod
	for i := range all.Items {
		if counts(&all.Items[i], r.Schedulers) {
			pods = append(pods, all.Items[i])
		}
	}
	var errs []error
	for i, status := range compute(policies.Items, pods, metav1.NewTime(r.Clock.Now())) {
		errs = append(errs, r.write(ctx, &policies.Items[i], status))
	}
	return ctrl.Result{}, errors.Join(errs...)
}

// write patches the status of a policy if it is another one.
func (r *Reconciler) write(ctx context.Context, policy *placementv1alpha1.PlacementPolicy, status placementv1alpha1.PlacementPolicyStatus) error {
	if equality.Semantic.DeepEqual(policy.Status, status) {
		return nil
	}
	changed := policy.DeepCopy()
	changed.Status = status
	err := r.Client.Status().Patch(ctx, changed, client.MergeFrom(policy))
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing the status of PlacementPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
	}
	return nil
}
