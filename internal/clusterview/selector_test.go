// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// What the first constraint of a pod selects is what is counted. matchLabelKeys mean what they mean upstream.
func TestSelectorOfConstraints(t *testing.T) {
	byTier := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}
	pod := func() *st.PodWrapper { return asking().Label("tier", "front").Label("pod-template-hash", "2") }
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want string // "" is no selector
		// is a selector to be looked up by, and of which pods.
		lookup       map[string]string
		selects, not map[string]string
	}{
		{"labels", soft(pod(), "zone", matching), "app=web", map[string]string{"app": "web"}, map[string]string{"app": "web"}, map[string]string{"app": "db"}},
		{"expressions", soft(pod(), "zone", byTier), "tier", nil, map[string]string{"tier": "x"}, map[string]string{"app": "web"}},
		{"an expression with one value", soft(pod(), "zone", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}), "app in (web)", map[string]string{"app": "web"}, map[string]string{"app": "web"}, map[string]string{"app": "db"}},
		{"the first of two", soft(soft(pod(), "zone", byTier), "host", matching), "tier", nil, map[string]string{"tier": "x"}, map[string]string{"app": "web"}},
		{"the first that selects the pod", soft(soft(pod(), "zone", other), "host", matching), "app=web", map[string]string{"app": "web"}, map[string]string{"app": "web"}, nil},
		{
			"matchLabelKeys", soft(pod(), "zone", matching, "pod-template-hash", "absent"), "app=web,pod-template-hash in (2)",
			map[string]string{"app": "web", "pod-template-hash": "2"},
			map[string]string{"app": "web", "pod-template-hash": "2"}, map[string]string{"app": "web", "pod-template-hash": "1"},
		},
		{"hard ones say nothing", hard(pod(), "zone"), "", nil, nil, nil},
		{"an annotation says all", soft(pod(), "zone", matching).Annotation(clusterview.PlacementAnnotation, "spread=zone"), "", nil, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := levels.Selector
			if s == nil {
				if tc.want != "" {
					t.Errorf("there is no selector, want %q", tc.want)
				}
				return
			}
			if want := (clusterview.Workload{Namespace: "ns", Kind: clusterview.KindSelector, Name: tc.want}); s.Workload() != want {
				t.Errorf("the workload is %v, want %v", s.Workload(), want)
			}
			if !labels.Equals(s.Labels, tc.lookup) {
				t.Errorf("it is looked up by %v, want %v", s.Labels, tc.lookup)
			}
			if !s.Matches(labels.Set(tc.selects)) || tc.not != nil && s.Matches(labels.Set(tc.not)) {
				t.Errorf("%q selects %v: %t, and %v: %t", s, tc.selects, s.Matches(labels.Set(tc.selects)), tc.not, s.Matches(labels.Set(tc.not)))
			}
		})
	}
}
