// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/pkg/placement/eviction"
)

// disruptions tells of each pod of a tail which disruption budgets count it, and returns how many pods each of these lets go.
func (pl *AllocationOrder) disruptions(w *world, tail []eviction.Pod) (allowed []int) {
	all, err := pl.budgets.List(labels.Everything())
	if err != nil {
		w.fail(err)
		return nil
	}
	type budget struct {
		*policyv1.PodDisruptionBudget
		labels.Selector
		index int
	}
	byNamespace := make(map[string][]budget)
	for _, b := range all {
		// As kube-scheduler has it, one that cannot be read or is empty counts no pods.
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || selector.Empty() {
			continue
		}
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], budget{b, selector, len(allowed)})
		allowed = append(allowed, int(b.Status.DisruptionsAllowed))
	}
	for i := range tail {
		pod := w.candidates[i].info.GetPod()
		for _, b := range byNamespace[pod.Namespace] {
			// One that the API server has let go already is counted.
			if _, gone := b.Status.DisruptedPods[pod.Name]; !gone && len(pod.Labels) > 0 && b.Matches(labels.Set(pod.Labels)) {
				tail[i].Budgets = append(tail[i].Budgets, b.index)
			}
		}
	}
	return allowed
}
