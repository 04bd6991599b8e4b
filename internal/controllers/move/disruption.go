// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Disruption returns how many disruption budgets select a pod, and whether one keeps it from being evicted now. Where two select it, there
// is no Move to be made: the API server evicts no such pod, however many are ready.
func Disruption(ctx context.Context, api client.Reader, pod *corev1.Pod) (selecting int, blocked bool, err error) {
	var budgets policyv1.PodDisruptionBudgetList
	if err := api.List(ctx, &budgets, client.InNamespace(pod.Namespace)); err != nil {
		return 0, false, fmt.Errorf("listing disruption budgets: %w", err)
	}
	for i := range budgets.Items {
		b := &budgets.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue // it selects nothing
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			selecting++
			blocked = blocked || b.Status.DisruptionsAllowed < 1
		}
	}
	return selecting, blocked, nil
}
