// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"k8s.io/utils/ptr"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Flags says which of its flags the controller runs with that have it do what policies say of pods that run.
type Flags struct{ Disconnect, Drained, Rebalance, Restart bool }

// missing returns what a policy says that needs a flag which is not there, with that flag; all says that the policy says nothing else.
func (f Flags) missing(p *clusterview.Policy) (missing []string, all bool) {
	all = !p.SaysLevels() && !p.SaysLimits() && p.Faults == nil && p.ScaleDown == ""
	moves := ptr.Deref(p.Moves, placementv1alpha1.Moves{})
	for _, one := range []struct {
		said, asked, there bool
		needs              string
	}{
		{p.Disconnect != nil, p.Disconnect != nil, f.Disconnect, "disconnect needs --keep-disconnected"},
		{moves.Drained != "", moves.Drained != placementv1alpha1.DrainedNone, f.Drained, "moves.drained needs --move-drained"},
		{moves.Rebalance != "", moves.Rebalance == placementv1alpha1.MovesEnabled, f.Rebalance, "moves.rebalance needs --rebalance, as Enabled or ByPolicy"},
		{moves.Restart != "", moves.Restart == placementv1alpha1.MovesEnabled, f.Restart, "moves.restart needs --restart-elsewhere"},
	} {
		if one.said && one.asked && !one.there {
			missing = append(missing, one.needs)
		} else if one.said {
			all = false // that nothing is done needs no flag
		}
	}
	return missing, all && len(missing) > 0
}
