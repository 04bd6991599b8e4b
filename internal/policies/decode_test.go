// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// A policy that cannot be decoded stops the pods that it selects, and no others.
func TestUndecodable(t *testing.T) {
	web, db, far := pod("ns", "web", "web"), pod("ns", "db", "db"), pod("elsewhere", "far", "web")
	malformed := func(path ...string) *unstructured.Unstructured {
		u := said(policy("bad", "web", 1)).(*unstructured.Unstructured)
		if err := unstructured.SetNestedField(u.Object, "five", path...); err != nil {
			t.Fatal(err)
		}
		return u
	}
	for name, tc := range map[string]struct {
		object  *unstructured.Unstructured
		refused []*corev1.Pod
	}{
		"levels":   {malformed("spec", "levels"), []*corev1.Pod{web}},
		"selector": {malformed("spec", "podSelector"), []*corev1.Pod{web, db}},
		"spec":     {malformed("spec"), []*corev1.Pod{web, db}},
		"priority": {malformed("spec", "priority"), []*corev1.Pod{web}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(c *cluster) {
				c.there = true
				c.Add(policy("good", "other", 1))
				c.Add(tc.object)
			}, web, db, far)
			r.wakes("db", "far", "web")
			for _, p := range []*corev1.Pod{web, db, far} {
				got, err := r.Governing(p)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(tc.refused, p) != (got != nil) {
					t.Fatalf("pod %s is governed by %v", p.Name, got)
				}
				if got == nil {
					continue
				}
				if _, err := got.Levels(); err == nil || !strings.Contains(err.Error(), "cannot be decoded") || !strings.Contains(err.Error(), `"bad"`) {
					t.Errorf("pod %s is told %v", p.Name, err)
				}
			}
			r.cluster.Modify(policy("bad", "web", 2))
			r.wakes(uids(tc.refused)...)
			r.governs("bad", web)
		})
	}
}

func uids(pods []*corev1.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, string(p.UID))
	}
	slices.Sort(all)
	return all
}

// A policy that overrides overrides also where something else of it cannot be decoded: what its pods say themselves does not let
// them go.
func TestUndecodableOverride(t *testing.T) {
	for name, tc := range map[string]struct {
		mode      any
		overrides bool
	}{
		"it does":          {"Override", true},
		"it does not":      {"Default", false},
		"it says nothing":  {nil, false},
		"it cannot say so": {int64(7), true},
		"it says nonsense": {"Overide", true},
	} {
		t.Run(name, func(t *testing.T) {
			u := said(policy("bad", "web", 1)).(*unstructured.Unstructured)
			spec := u.Object["spec"].(map[string]any)
			spec["levels"], spec["priority"] = "five", int64(9)
			if spec["mode"] = tc.mode; tc.mode == nil {
				delete(spec, "mode")
			}
			s, err := store(u)
			if err != nil {
				t.Fatal(err)
			}
			bad := s.(*stored).policy
			other := clusterview.ReadPolicy(policy("a", "web", 1))
			if bad.Overrides() != tc.overrides || bad.Compare(other) >= 0 {
				t.Errorf("it overrides: %t, and is before a policy of no priority: %t", bad.Overrides(), bad.Compare(other) < 0)
			}
			constrained := pod("ns", "p", "web")
			constrained.Annotations = map[string]string{clusterview.PlacementAnnotation: "spread=rack"}
			if _, err := clusterview.LevelsOf(constrained, bad, nil); (err != nil) != tc.overrides {
				t.Errorf("a pod with levels of its own is told %v", err)
			}
		})
	}
}
