// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
)

// Whether pods are moved the policy says, or the flag where it says nothing. A dry run moves none, whatever a policy says.
func TestMovesByPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		mode  string
		says  placementv1alpha1.MovesMode
		moved bool
		told  bool
	}{
		"the flag alone":           {Enabled, "", true, false},
		"the policy does not want": {Enabled, placementv1alpha1.MovesDisabled, false, false},
		"both":                     {Enabled, placementv1alpha1.MovesEnabled, true, false},
		"nobody has asked":         {move.ByPolicy, "", false, false},
		"the policy has asked":     {move.ByPolicy, placementv1alpha1.MovesEnabled, true, false},
		"a dry run":                {DryRun, placementv1alpha1.MovesEnabled, false, true},
		"no dry run":               {DryRun, placementv1alpha1.MovesDisabled, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Mode = tc.mode
			r := newRig(t, o)
			r.node("a", "a", time.Hour)
			r.node("b", "b", time.Hour)
			p := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			p.Spec.PodSelector.MatchLabels = map[string]string{"app": "web"}
			p.Spec.Moves = &placementv1alpha1.Moves{Rebalance: tc.says}
			r.make(p)
			r.deploy("web", plain, "a", "a", "a", "a")
			r.after(0)
			var want []string
			if tc.moved {
				want = []string{"web-3"}
			}
			r.after(2*time.Minute, want...)
			if told := len(r.said.Events) > 0; told != tc.told {
				t.Errorf("an event says what would be done: %t", told)
			}
		})
	}
}
