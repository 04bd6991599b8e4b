// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// asks makes a policy that says for which reasons the pods of an app are replaced.
func (s *story) asks(app string, moves placementv1alpha1.Moves) *placementv1alpha1.PlacementPolicy {
	s.Helper()
	p := &placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: app},
		Spec:       placementv1alpha1.PlacementPolicySpec{PodSelector: *selects(app), Moves: &moves},
	}
	s.until("policy "+app+" to be created", func() error { return s.policies().Create(s.ctx, p) })
	return p
}

// Of a cordoned node those pods are replaced whose policy asks for it, although no budget keeps them there, and none whose policy does not
// want it, although one does. The controller's flag has those replaced alone that a budget keeps.
func TestDrainByPolicy(t *testing.T) {
	s := begin(t, moves, byZone)
	node := s.nodes(1, 20, zone("zone-a"))[0]
	apps := map[string]int{"all": 0, "none": 2, "unasked": 2} // how many stay there
	for app := range apps {
		s.deploy(app, 2, "")
		s.settled(app, 2)
	}
	s.keeps("none", 2)
	s.asks("all", placementv1alpha1.Moves{Drained: placementv1alpha1.DrainedAll})
	s.asks("none", placementv1alpha1.Moves{Drained: placementv1alpha1.DrainedNone})
	s.nodes(1, 20, zone("zone-b"))
	stop := s.neverBelow("all", 2)
	s.cordon(true, node)
	s.movedExactly(2)
	stop()
	for app, want := range apps {
		if n := s.settled(app, 2).OnNodes()[node]; n != want {
			t.Errorf("%d pods of %s are on %s, want %d", n, app, node, want)
		}
	}
}

// A policy keeps its pods where they are, though the controller rebalances all others, until it says something else.
func TestRebalanceByPolicy(t *testing.T) {
	s := begin(t, moves, byZone)
	s.nodes(1, 20, zone("zone-a"))
	s.deploy("app", 4, "")
	s.settled("app", 4)
	p := s.asks("app", placementv1alpha1.Moves{Rebalance: placementv1alpha1.MovesDisabled})
	s.nodes(1, 20, zone("zone-b"))
	s.rebalanced()
	s.still(0)
	before := p.DeepCopy()
	p.Spec.Moves.Rebalance = placementv1alpha1.MovesEnabled
	stop := s.neverBelow("app", 4)
	s.must(s.policies().Patch(s.ctx, p, client.MergeFrom(before)), "changing the policy")
	s.movedExactly(2)
	stop()
	s.counts(s.settled("app", 4), 0, 2, 2)
}
