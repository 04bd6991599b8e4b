// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// Soft names a node's taints with the effect PreferNoSchedule, "" without any, as KEY=VALUE,KEY=VALUE
// in order: no key and no value of a taint has a comma in it. A condition by which the node is Leaving counts as such a taint: the others of
// that kind are taints, or keep pods off.
func Soft(node *corev1.Node) string { return soft(node, lifecycleConditions()) }

func soft(node *corev1.Node, conditions bool) string {
	var taints []string
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			taints = append(taints, t.Key+"="+t.Value)
		}
	}
	if conditions {
		for _, c := range leavingBy(node) {
			taints = append(taints, c+"=")
		}
	}
	slices.Sort(taints)
	return strings.Join(taints, ",")
}

// ToleratesSoft reports whether a pod with such tolerations tolerates all taints that Soft names.
func ToleratesSoft(tolerations []corev1.Toleration, soft string) bool {
	for text := range strings.SplitSeq(soft, ",") {
		key, value, _ := strings.Cut(text, "=")
		taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectPreferNoSchedule}
		// Operators that compare are in a pod only where the API server has them switched on.
		if !v1helper.TolerationsTolerateTaint(klog.Background(), tolerations, &taint, true) {
			return false
		}
	}
	return true
}
