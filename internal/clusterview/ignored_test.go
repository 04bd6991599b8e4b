// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// seventeen is a pod with one constraint more than there may be levels.
func seventeen() *st.PodWrapper {
	p := asking()
	for i := range 17 {
		p = soft(p, fmt.Sprintf("key-%d", i), matching)
	}
	return p
}

func TestIgnored(t *testing.T) {
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	wide := &metav1.LabelSelector{}
	with := func(maxSkew int, affinity, taints *corev1.NodeInclusionPolicy) *st.PodWrapper {
		return asking().SpreadConstraint(maxSkew, "zone", corev1.ScheduleAnyway, matching, nil, affinity, taints, nil)
	}
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want []string // a part of each sentence, in order
	}{
		{"nothing asked", asking(), nil},
		{"what is honoured", with(1, nil, nil), nil},
		{"what is the same as nothing", with(1, &ignore, &ignore), nil},
		{"hard ones are in-tree", hard(asking(), "zone"), nil},
		{"maxSkew", with(5, nil, nil), []string{`over "zone" has maxSkew 5`}},
		{"both policies", with(1, &honor, &honor), []string{"nodeAffinityPolicy Honor", "nodeTaintsPolicy Honor"}},
		{"other pods", soft(soft(asking(), "zone", matching), "host", other), []string{`over "host" does not select the pod itself`}},
		{"another selector", soft(soft(asking(), "zone", matching), "host", wide), []string{`over "host" has a selector of its own`}},
		{"a key that is none", soft(soft(asking(), "zone ", matching), "host", matching), []string{`over "zone " is no level: this is no label key`}},
		{"no key at all that is one", soft(asking(), "{{ .Values.key }}", matching), []string{"is no level"}},
		{"only other pods", soft(asking(), "zone", other), []string{"does not select the pod itself"}},
		{"a seventeenth", seventeen(), []string{`over "key-16" is no level: a pod has 16 at most`}},
		{"an annotation", soft(asking(), "zone", matching).Annotation(clusterview.PlacementAnnotation, "spread=rack"), []string{"because the annotation " + clusterview.PlacementAnnotation}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), nil, plugintest.Levels(t, "spread=a"))
			if err != nil {
				t.Fatal(err)
			}
			got := clusterview.Ignored(tc.pod.Obj(), levels)
			if len(got) != len(tc.want) {
				t.Fatalf("it is said %q, want %d sentences", got, len(tc.want))
			}
			for i, part := range tc.want {
				if !strings.Contains(got[i], part) || !strings.HasSuffix(got[i], ".") {
					t.Errorf("it is said %q, want %q", got[i], part)
				}
			}
		})
	}
	overriding := policy("tiers", 0)
	overriding.Spec.Mode = placementv1alpha1.ModeOverride
	levels := clusterview.Levels{Source: clusterview.FromPolicy, Policy: clusterview.ReadPolicy(overriding)}
	pod := with(1, nil, nil).Annotation(clusterview.PlacementAnnotation, "spread=rack").Obj()
	if got := clusterview.Ignored(pod, levels); len(got) != 2 || !strings.Contains(got[0], `because PlacementPolicy "tiers" overrides`) || !strings.Contains(got[1], `because PlacementPolicy "tiers" overrides`) {
		t.Errorf("under a policy it is said %q", got)
	}
}

// A policy that overrides nothing is for pods whose own constraints are none: that is the reason, and not the policy.
func TestIgnoredUnderADefault(t *testing.T) {
	levels := clusterview.Levels{Source: clusterview.FromPolicy, Policy: clusterview.ReadPolicy(policy("tiers", 0))}
	if got := clusterview.Ignored(soft(asking(), "zone", other).Obj(), levels); len(got) != 1 || !strings.Contains(got[0], "does not select the pod itself") {
		t.Errorf("it is said %q", got)
	}
}
