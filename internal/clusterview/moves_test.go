// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Whether a policy's pods are replaced it says itself, or the flags say it. Of one that cannot be read none are.
func TestMovesOfAPolicy(t *testing.T) {
	type moves = placementv1alpha1.Moves
	var none *clusterview.Policy
	says := func(m *moves) *clusterview.Policy {
		in := policy("p", 0)
		in.Spec.Moves = m
		return clusterview.ReadPolicy(in)
	}
	malformed := policy("p", 0, placementv1alpha1.Level{TopologyKey: "node.id"})
	malformed.Spec.Moves = &moves{Drained: "All", Rebalance: "Enabled", Restart: "Enabled"}
	everything := policy("p", 0)
	everything.Spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	everything.Spec.Moves = malformed.Spec.Moves
	for name, tc := range map[string]struct {
		policy *clusterview.Policy
		// off and on are what is replaced if the flags say none, and all.
		off, on string
	}{
		"no policy":                      {none, "None false false", "All true true"},
		"nothing":                        {says(nil), "None false false", "All true true"},
		"those that are blocked":         {says(&moves{Drained: "Blocked"}), "Blocked false false", "Blocked true true"},
		"all":                            {says(&moves{Drained: "All", Rebalance: "Enabled", Restart: "Enabled"}), "All true true", "All true true"},
		"none":                           {says(&moves{Drained: "None", Rebalance: "Disabled", Restart: "Disabled"}), "None false false", "None false false"},
		"levels that cannot be read":     {clusterview.ReadPolicy(malformed), "None false false", "None false false"},
		"a selector that cannot be read": {clusterview.ReadPolicy(everything), "None false false", "None false false"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, flags := range []struct {
				drained placementv1alpha1.DrainedPods
				others  bool
				want    string
			}{{"None", false, tc.off}, {"All", true, tc.on}} {
				got := fmt.Sprint(tc.policy.Drained(flags.drained), " ", tc.policy.Rebalances(flags.others), " ", tc.policy.Restarts(flags.others))
				if got != flags.want {
					t.Errorf("with flags %v it is %s, want %s", flags, got, flags.want)
				}
			}
		})
	}
	if !says(&moves{}).Places() || says(nil).Places() {
		t.Error("a policy has a say that says something of moves, and no other")
	}
}
