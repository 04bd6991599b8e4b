// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func TestSoft(t *testing.T) {
	prefer := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectPreferNoSchedule}
	}
	hard := corev1.Taint{Key: "hard", Effect: corev1.TaintEffectNoSchedule}
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	for name, tc := range map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		soft        string
		tolerated   bool
	}{
		"none":                  {nil, nil, "", true},
		"hard ones alone":       {[]corev1.Taint{hard}, nil, "", true},
		"a soft one":            {[]corev1.Taint{hard, prefer("a", "")}, nil, "a=", false},
		"two, in order":         {[]corev1.Taint{prefer("b", "2"), prefer("a", "1")}, []corev1.Toleration{exists("a", "")}, "a=1,b=2", false},
		"tolerated":             {[]corev1.Taint{prefer("a", "1")}, []corev1.Toleration{{Key: "a", Value: "1", Effect: corev1.TaintEffectPreferNoSchedule}}, "a=1", true},
		"of another effect":     {[]corev1.Taint{prefer("a", "1")}, []corev1.Toleration{exists("a", corev1.TaintEffectNoSchedule)}, "a=1", false},
		"of another value":      {[]corev1.Taint{prefer("a", "1")}, []corev1.Toleration{{Key: "a", Value: "2"}}, "a=1", false},
		"all that there may be": {[]corev1.Taint{prefer("a", "1"), prefer("b", "")}, []corev1.Toleration{exists("", "")}, "a=1,b=", true},
	} {
		t.Run(name, func(t *testing.T) {
			soft := clusterview.Soft(&corev1.Node{Spec: corev1.NodeSpec{Taints: tc.taints}})
			if tolerated := soft == "" || clusterview.ToleratesSoft(tc.tolerations, soft); soft != tc.soft || tolerated != tc.tolerated {
				t.Errorf("it is %q, tolerated %t; want %q, %t", soft, tolerated, tc.soft, tc.tolerated)
			}
		})
	}
}
