// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestPlacedBy(t *testing.T) {
	frontend := clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "frontend", Generation: 3},
		Spec: placementv1alpha1.PlacementPolicySpec{Levels: []placementv1alpha1.Level{{
			TopologyKey: "zone", Shares: []placementv1alpha1.ValueShare{{Value: "a", Share: 70}, {Value: "b", Share: 30}},
		}}},
	})
	everywhere := clusterview.ReadClusterPolicy(clusterPolicy("frontend", "", placementv1alpha1.Level{TopologyKey: "rack"}))
	pod := func() *st.PodWrapper { return st.MakePod().Namespace("ns").Name("p").Label("app", "web") }
	for name, tc := range map[string]struct {
		pod    *st.PodWrapper
		policy *clusterview.Policy
		want   string
		by     *clusterview.Policy
	}{
		"an annotation":           {pod().Annotation(clusterview.PlacementAnnotation, "spread=zone,pack=rack"), frontend, "annotation spread=zone,pack=rack", nil},
		"a policy":                {pod(), frontend, "policy/frontend@3 spread=zone;weight.a=70;weight.b=30;nodesWithoutKey=LastResort", frontend},
		"a policy of the cluster": {pod(), everywhere, "clusterpolicy/frontend@1 spread=rack;nodesWithoutKey=LastResort", everywhere},
		"constraints": {pod().SpreadConstraint(1, "rack", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("app", "web").Obj(), nil, nil, nil, nil), nil,
			"constraints spread=rack;nodesWithoutKey=LastResort", nil},
		"the defaults": {pod(), nil, "defaults spread=zone", nil},
	} {
		t.Run(name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), tc.policy, plugintest.Levels(t, "spread=zone"))
			must(t, err)
			got := levels.PlacedBy()
			if got != tc.want {
				t.Errorf("it is placed by %q, want %q", got, tc.want)
			}
			for _, value := range []string{got, clusterview.Trimmed(got)} {
				for _, policy := range []*clusterview.Policy{frontend, everywhere} {
					if policy.Placed(value) != (policy == tc.by) {
						t.Errorf("%q names %s: %t", value, policy, policy.Placed(value))
					}
				}
				if clusterview.ByPolicy(value) != (tc.by != nil) {
					t.Errorf("%q names a policy: %t", value, clusterview.ByPolicy(value))
				}
			}
		})
	}
	if got := (clusterview.Levels{}).PlacedBy(); got != "defaults" {
		t.Errorf("a pod over no levels is placed by %q", got)
	}
}

// However much a pod asks for, what is written into it is short, and is cut between levels.
func TestPlacedByIsBounded(t *testing.T) {
	for levels := 1; levels <= 16; levels++ {
		for length := 1; length <= 60; length++ {
			var listed []string
			for i := range levels {
				listed = append(listed, fmt.Sprintf("spread=%s%d", strings.Repeat("x", length), i))
			}
			text := strings.Join(listed, ",")
			l := clusterview.Levels{Source: clusterview.FromAnnotation, List: plugintest.Levels(t, text)}
			got := l.PlacedBy()
			if len(got) > clusterview.MaxPlacedBy {
				t.Fatalf("%d levels of %d letters take %d bytes", levels, length, len(got))
			}
			if full := "annotation " + text; got == full {
				continue
			} else if len(full) <= clusterview.MaxPlacedBy {
				t.Fatalf("%q was cut, and has room", full)
			}
			cut, found := strings.CutSuffix(strings.TrimPrefix(got, "annotation "), ",...")
			if !found || !strings.HasPrefix(text, cut+",") {
				t.Fatalf("%d levels of %d letters became %q", levels, length, got)
			}
		}
	}
}

func TestWritePlacedBy(t *testing.T) {
	state := framework.NewCycleState()
	if _, found := clusterview.ReadPlacedBy(state); found {
		t.Error("a new cycle has levels")
	}
	clusterview.WritePlacedBy(state, clusterview.Levels{Source: clusterview.FromConstraints})
	if got, found := clusterview.ReadPlacedBy(state.Clone()); !found || got.Source != clusterview.FromConstraints {
		t.Errorf("got %v, %t", got, found)
	}
}
