// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func TestNoteRivals(t *testing.T) {
	policy := func(name, app string, levels ...placementv1alpha1.Level) *clusterview.Policy {
		return clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: placementv1alpha1.PlacementPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
				Levels:      levels,
			},
		})
	}
	zone := placementv1alpha1.Level{TopologyKey: "zone"}
	for name, tc := range map[string]struct {
		policies []*clusterview.Policy
		want     float64
	}{
		"none":                       {nil, 0},
		"one":                        {[]*clusterview.Policy{policy("a", "web", zone)}, 0},
		"of other pods":              {[]*clusterview.Policy{policy("a", "other", zone), policy("b", "web", zone), policy("c", "other", zone)}, 0},
		"two":                        {[]*clusterview.Policy{policy("a", "web", zone), policy("b", "other", zone), policy("c", "web", zone)}, 1},
		"three count as one":         {[]*clusterview.Policy{policy("a", "web", zone), policy("b", "web", zone), policy("c", "web", zone)}, 1},
		"one that has no say":        {[]*clusterview.Policy{policy("a", "web", zone), policy("b", "web")}, 0},
		"of two, the older has none": {[]*clusterview.Policy{policy("a", "web"), policy("b", "web", zone)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			known, web := Fixed(tc.policies...), pod("ns", "p", "web")
			governing, err := known.Governing(web)
			if err != nil {
				t.Fatal(err)
			}
			before := conflicts(t)
			known.NoteRivals(governing, web)
			if got := conflicts(t) - before; got != tc.want {
				t.Errorf("%v conflicts were counted, want %v", got, tc.want)
			}
		})
	}
}

func conflicts(t *testing.T) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(conflictsTotal.CounterMetric)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
