// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"cmp"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// noMoves are those of a policy of which something cannot be read: others in the place of its pods would stay Pending.
var noMoves = placementv1alpha1.Moves{
	Drained: placementv1alpha1.DrainedNone, Rebalance: placementv1alpha1.MovesDisabled, Restart: placementv1alpha1.MovesDisabled,
}

// moves are those of a policy, empty for none.
func (p *Policy) moves() placementv1alpha1.Moves {
	switch {
	case p == nil:
		return placementv1alpha1.Moves{}
	case p.Err() != nil:
		return noMoves
	case p.Moves == nil:
		return placementv1alpha1.Moves{}
	}
	return *p.Moves
}

// Drained is which of the policy's pods are replaced before they are evicted from a node that is about to be removed, the given ones where
// it says nothing of it. The policy may be nil.
func (p *Policy) Drained(otherwise placementv1alpha1.DrainedPods) placementv1alpha1.DrainedPods {
	return cmp.Or(p.moves().Drained, otherwise)
}

// Rebalances reports whether the policy's pods are replaced where they are misplaced. Otherwise is what holds where it says nothing of it. The
// policy may be nil.
func (p *Policy) Rebalances(otherwise bool) bool { return enabled(p.moves().Rebalance, otherwise) }

// Restarts reports whether the policy's pods are replaced where they fail, as Rebalances does.
func (p *Policy) Restarts(otherwise bool) bool { return enabled(p.moves().Restart, otherwise) }

func enabled(mode placementv1alpha1.MovesMode, otherwise bool) bool {
	if mode == "" {
		return otherwise
	}
	return mode == placementv1alpha1.MovesEnabled
}
