// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/espalier-scheduler/espalier/pkg/placement/eviction"
)

// budget is a disruption budget that counts pods.
type budget struct {
	*policyv1.PodDisruptionBudget
	labels.Selector
	index int
}

// counts reports whether it counts a pod of its namespace. One that the API server has let go already is counted no more.
func (b budget) counts(pod *corev1.Pod) bool {
	_, gone := b.Status.DisruptedPods[pod.Name]
	return !gone && b.Matches(labels.Set(pod.Labels))
}

// disruptions tells of each pod of a tail which disruption budgets count it, and returns how many pods each of these lets go.
func (pl *AllocationOrder) disruptions(w *world, tail []eviction.Pod) (allowed []int) {
	all, err := pl.budgets.List(labels.Everything())
	if err != nil {
		w.fail(err)
		return nil
	}
	byNamespace := make(map[string][]budget)
	for _, b := range all {
		// As the budgets' controller has it: an empty selector selects all pods of the namespace. kube-scheduler 1.37 took that for none.
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue
		}
		byNamespace[b.Namespace] = append(byNamespace[b.Namespace], budget{b, selector, len(allowed)})
		allowed = append(allowed, int(b.Status.DisruptionsAllowed))
	}
	concerned := make(map[string][]budget) // those that let pods of the tail go, by namespace
	known := make([]bool, len(allowed))
	for i := range tail {
		pod := w.candidates[i].info.GetPod()
		if pl.tenants.WasDeleted(pod.UID) {
			continue
		}
		for _, b := range byNamespace[pod.Namespace] {
			if !b.counts(pod) {
				continue
			}
			tail[i].Budgets = append(tail[i].Budgets, b.index)
			if allowed[b.index] > 0 && !known[b.index] {
				known[b.index] = true
				concerned[b.Namespace] = append(concerned[b.Namespace], b)
			}
		}
	}
	w.fail(pl.takeOff(allowed, concerned))
	return allowed
}

// takeOff lowers what budgets allow to what those of their pods that are ready now have to spare. The controller of the budgets writes their
// status some time after pods were deleted: preemptors that follow each other meanwhile would all have the same one go. Nobody can tell which
// deletions a status has seen, so pods are counted as that controller counts them.
func (pl *AllocationOrder) takeOff(allowed []int, concerned map[string][]budget) error {
	if len(concerned) == 0 {
		return nil
	}
	all, err := pl.pods.List(labels.Everything()) // kube-scheduler has no index by namespace
	if err != nil {
		return err
	}
	ready := make([]int, len(allowed))
	for _, pod := range all {
		budgets := concerned[pod.Namespace]
		if len(budgets) == 0 || pod.DeletionTimestamp != nil || !podutil.IsPodReady(pod) || pl.tenants.WasDeleted(pod.UID) {
			continue
		}
		for _, b := range budgets {
			if b.counts(pod) {
				ready[b.index]++
			}
		}
	}
	for _, budgets := range concerned {
		for _, b := range budgets {
			allowed[b.index] = min(allowed[b.index], ready[b.index]-int(b.Status.DesiredHealthy))
		}
	}
	return nil
}
