// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwnershipKey names what one of several active replicas places as a whole: pods that are counted together have one key,
// as far as they say it themselves. It depends on the pod alone, or else two replicas of which one has not seen a
// ReplicaSet yet would not agree whose its pods are.
//
// Pods that name a workload are of that. Pods with a soft spread constraint are of its selector, because it may select
// pods of several owners. The ReplicaSets of one Deployment are one, by their names, which end with the hash that their pods
// have as a label. All others are of their controller, or alone.
func OwnershipKey(pod *corev1.Pod) string {
	w := named(pod)
	if w.Kind != KindPod {
		return w.String()
	}
	if selector := softSelector(pod); selector != "" {
		return Workload{pod.Namespace, KindSelector, selector}.String()
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		w.Kind, w.Name = groupKind(owner), owner.Name
		if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
			w.Name = strings.TrimSuffix(w.Name, "-"+hash)
		}
	}
	return w.String()
}

// softSelector is that of a pod's first soft constraint, "" if there is none that can be read. What differs from revision
// to revision, by matchLabelKeys, is left out: the API server adds it to the selector.
func softSelector(pod *corev1.Pod) string {
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway || c.LabelSelector == nil {
			continue
		}
		common := *c.LabelSelector
		common.MatchExpressions = slices.DeleteFunc(slices.Clone(common.MatchExpressions), func(r metav1.LabelSelectorRequirement) bool {
			return slices.Contains(c.MatchLabelKeys, r.Key)
		})
		if selector, err := metav1.LabelSelectorAsSelector(&common); err == nil {
			return selector.String()
		}
	}
	return ""
}
