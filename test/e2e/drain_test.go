// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// asks makes a policy that says for which reasons the pods of an app are replaced.
func (s *story) asks(app string, moves placementv1alpha1.Moves) {
	s.Helper()
	s.governs(app, app, placementv1alpha1.PlacementPolicySpec{Moves: &moves})
}

// Of a cordoned node those pods are replaced whose policy asks for it, although no budget keeps them there, and none whose policy does not
// want it, although one does. The controller's flag has those replaced alone that a budget keeps.
func TestDrainByPolicy(t *testing.T) {
	s := begin(t, moves, byZone)
	node := s.nodes(1, 20, zone("zone-a"))[0]
	apps := map[string]int{"all": 0, "none": 2, "unasked": 2} // how many stay there
	for app := range apps {
		s.deployed(app, 2, "")
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

// condition gives a node a condition that is true.
func (s *story) condition(node string, is corev1.NodeConditionType) {
	s.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True","reason":"Story","message":"","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, is, now, now)
	_, err := s.client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	s.must(err, "giving node "+node+" the condition "+string(is))
}

// Nobody has cordoned a node of which a change is planned. New pods go to others of its zone, and a pod that a disruption budget keeps there is
// replaced first.
func TestNodeWhoseChangeIsPlanned(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	if world.scheduler == nil {
		s.Skip("the cluster's own scheduler need not have the feature gate")
	}
	planned := s.nodes(1, 20, zone("zone-a"))[0]
	s.deployed("kept", 1, "")
	s.keeps("kept", 1)
	s.nodes(1, 20, zone("zone-a"))
	stop := s.neverBelow("kept", 1)
	s.condition(planned, corev1.NodeMaintenancePlanned)
	s.moved(1, placementv1alpha1.MoveDone)
	stop()
	s.deploy("new", 4, "")
	for app, pods := range map[string]int{"kept": 1, "new": 4} {
		if n := s.settled(app, pods).OnNodes()[planned]; n > 0 {
			t.Errorf("%d pods of %s are on %s", n, app, planned)
		}
	}
	s.wroteNoReplicas("kept")
}
