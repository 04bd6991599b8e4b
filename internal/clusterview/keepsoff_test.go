// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func TestKeepsOff(t *testing.T) {
	cordon := corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}
	tainted := func(effect corev1.TaintEffect) corev1.NodeSpec {
		return corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: effect}}}
	}
	for name, tc := range map[string]struct {
		node corev1.NodeSpec
		pod  []corev1.Toleration
		want bool
	}{
		"a node without taints":                {corev1.NodeSpec{}, nil, false},
		"a cordon":                             {corev1.NodeSpec{Unschedulable: true}, nil, true},
		"a cordon that is tolerated":           {corev1.NodeSpec{Unschedulable: true}, []corev1.Toleration{cordon}, false},
		"a pod that tolerates all":             {corev1.NodeSpec{Unschedulable: true}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, false},
		"a taint that evicts":                  {tainted(corev1.TaintEffectNoExecute), nil, true},
		"a taint that keeps pods off":          {tainted(corev1.TaintEffectNoSchedule), []corev1.Toleration{cordon}, true},
		"a taint that is tolerated":            {tainted(corev1.TaintEffectNoSchedule), []corev1.Toleration{{Key: "k", Value: "v"}}, false},
		"a taint by which the node comes last": {tainted(corev1.TaintEffectPreferNoSchedule), nil, false},
	} {
		if got := clusterview.KeepsOff(&corev1.Node{Spec: tc.node}, &corev1.Pod{Spec: corev1.PodSpec{Tolerations: tc.pod}}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
