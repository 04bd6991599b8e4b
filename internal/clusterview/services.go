// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// OfServices returns the selector of the Services that select a pod which stands alone, several as one: without a
// controller and without a workload of its own naming. The pods that it selects are what kube-scheduler's default constraints
// spread such a pod among. It is nil for other pods, and where no Service selects the pod.
func OfServices(pod *corev1.Pod, services corelisters.ServiceLister) (*Selector, error) {
	if metav1.GetControllerOfNoCopy(pod) != nil || named(pod).Kind != KindPod || len(pod.Labels) == 0 {
		return nil, nil //nolint:nilnil // no selector is an answer
	}
	known, err := services.Services(pod.Namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing Services of namespace %s: %w", pod.Namespace, err)
	}
	all := make(labels.Set)
	for _, s := range known {
		// What all of them select has the labels of each, so that no two contradict each other.
		if labels.Set(s.Spec.Selector).AsSelectorPreValidated().Matches(labels.Set(pod.Labels)) {
			maps.Copy(all, s.Spec.Selector)
		}
	}
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // no selector is an answer
	}
	return &Selector{all.AsSelectorPreValidated(), pod.Namespace, all}, nil
}
