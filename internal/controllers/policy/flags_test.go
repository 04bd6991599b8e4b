// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// What a policy says of pods that run is done by the controller, if its flags let it. The status says which one is missing.
func TestMissingFlags(t *testing.T) {
	type moves = placementv1alpha1.Moves
	all := moves{Drained: "All", Rebalance: "Enabled", Restart: "Enabled"}
	none := moves{Drained: "None", Rebalance: "Disabled", Restart: "Disabled"}
	for name, tc := range map[string]struct {
		moves  *moves
		change func(*placementv1alpha1.PlacementPolicySpec)
		flags  Flags
		want   []string // the flags that are missing
		ready  string   // with ! if it is
	}{
		"nothing of the kind":       {nil, func(s *placementv1alpha1.PlacementPolicySpec) { s.Faults = &placementv1alpha1.Faults{} }, Flags{}, nil, "InForce!"},
		"all, and no flag":          {&all, nil, Flags{}, []string{"--move-drained", "--rebalance", "--restart-elsewhere"}, "NotEnabled"},
		"all, and one flag":         {&all, nil, Flags{Rebalance: true}, []string{"--move-drained", "--restart-elsewhere"}, "InForce!"},
		"all, and all flags":        {&all, nil, Flags{Drained: true, Rebalance: true, Restart: true}, nil, "InForce!"},
		"none, and no flag":         {&none, nil, Flags{}, nil, "InForce!"},
		"blocked, and no flag":      {&moves{Drained: "Blocked"}, nil, Flags{Rebalance: true}, []string{"--move-drained"}, "NotEnabled"},
		"disconnect, and no flag":   {nil, func(s *placementv1alpha1.PlacementPolicySpec) { s.Disconnect = &placementv1alpha1.Disconnect{} }, Flags{}, []string{"--keep-disconnected"}, "NotEnabled"},
		"disconnect, and its flag":  {nil, func(s *placementv1alpha1.PlacementPolicySpec) { s.Disconnect = &placementv1alpha1.Disconnect{} }, Flags{Disconnect: true}, nil, "InForce!"},
		"levels beside, no flag":    {&all, func(s *placementv1alpha1.PlacementPolicySpec) { s.Levels = made("", "", 0).Spec.Levels }, Flags{}, []string{"--move-drained", "--rebalance", "--restart-elsewhere"}, "InForce!"},
		"scale-down beside, no one": {&all, func(s *placementv1alpha1.PlacementPolicySpec) { s.ScaleDown = "Any" }, Flags{}, []string{"--move-drained", "--rebalance", "--restart-elsewhere"}, "InForce!"},
	} {
		t.Run(name, func(t *testing.T) {
			p := made("p", "web", 0)
			p.Spec.Levels, p.Spec.Moves = nil, tc.moves
			if tc.change != nil {
				tc.change(&p.Spec)
			}
			s := compute(readAll(p), nil, pods(1, "web"))[0]
			s.missing, s.idle = tc.flags.missing(s.policy)
			status := s.status(p.Status, noon)
			if got := strings.Fields(brief(status)); got[len(got)-1] != tc.ready {
				t.Errorf("it is %v, want %s", got, tc.ready)
			}
			message := meta.FindStatusCondition(status.Conditions, placementv1alpha1.ConditionReady).Message
			for _, flag := range []string{"--keep-disconnected", "--move-drained", "--rebalance", "--restart-elsewhere"} {
				if strings.Contains(message, "needs "+flag) != slices.Contains(tc.want, flag) {
					t.Errorf("it says %q", message)
				}
			}
		})
	}
}
