// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// clusterPolicy creates a policy of the cluster over racks, for the pods of an app in the namespaces that have a label team with the
// name of the story.
func (s *story) clusterPolicy(name, app string, mode placementv1alpha1.Mode) *placementv1alpha1.ClusterPlacementPolicy {
	s.Helper()
	p := &placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + name}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": s.name}
	p.Spec.PlacementPolicySpec = placementv1alpha1.PlacementPolicySpec{PodSelector: *selects(app), Mode: mode, Levels: []placementv1alpha1.Level{over(rackLabel)}}
	s.until("policy "+p.Name+" to be created", func() error { return s.policies().Create(s.ctx, p) })
	s.Cleanup(func() { // it is in no namespace that goes
		if err := client.IgnoreNotFound(s.policies().Delete(context.Background(), p)); err != nil {
			s.Errorf("deleting policy %s: %v", p.Name, err)
		}
	})
	return p
}

// governs waits until the status of a policy of the cluster says that it selects and governs so many pods.
func (s *story) governs(p *placementv1alpha1.ClusterPlacementPolicy, selected, governed int32) {
	s.Helper()
	s.until("the status of policy "+p.Name, func() error {
		var got placementv1alpha1.ClusterPlacementPolicy
		if err := s.policies().Get(s.ctx, types.NamespacedName{Name: p.Name}, &got); err != nil {
			return err
		}
		if ptr.Deref(got.Status.SelectedPods, -1) != selected || ptr.Deref(got.Status.GovernedPods, -1) != governed {
			return fmt.Errorf("it is %+v, and not of %d pods and %d", got.Status, selected, governed)
		}
		return nil
	})
}

// Whoever runs the cluster has the last word by a default, and the first by overriding; and in those namespaces alone that are
// selected by their labels, from the moment they have them.
func TestClusterPolicies(t *testing.T) {
	s := begin(t, spread.core(), byZone, byRack)
	s.nodes(2, 60, place("zone-a", "rack-1"))
	s.nodes(1, 60, place("zone-a", "rack-2"))
	s.nodes(1, 60, place("zone-b", "rack-3"))
	byDefault := s.clusterPolicy("default", "app", placementv1alpha1.ModeDefault)
	s.governs(byDefault, 0, 0)
	s.deploy("app", 12, "")
	zones, racks := map[string]int{"zone-a": 6, "zone-b": 6}, map[string]int{"rack-1": 4, "rack-2": 4, "rack-3": 4}
	s.exactly(s.settled("app", 12), 0, zones) // the namespace is not selected

	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q}}}`, s.name)
	_, err := s.client.CoreV1().Namespaces().Patch(s.ctx, s.ns, types.MergePatchType, patch, metav1.PatchOptions{})
	s.must(err, "labelling the namespace")
	s.governs(byDefault, 12, 0) // what runs was placed before
	s.roll("app", "2")
	o := s.settled("app", 12)
	s.exactly(o, 1, racks)
	s.placedBy(o, "clusterpolicy/"+byDefault.Name+"@1 spread="+rackLabel+";nodesWithoutKey=LastResort")
	s.governs(byDefault, 12, 12)

	// A policy of the namespace takes its place, and gives way to one of the cluster that overrides.
	s.status(s.policy("own", "app", over(zoneLabel), over(corev1.LabelHostname)), 0, "Conflicted=NoConflict", "Ready=InForce")
	s.roll("app", "3")
	s.exactly(s.settled("app", 12), 0, zones)
	s.governs(byDefault, 12, 0)
	overriding := s.clusterPolicy("override", "app", placementv1alpha1.ModeOverride)
	s.governs(overriding, 12, 0)
	s.roll("app", "4")
	s.exactly(s.settled("app", 12), 1, racks)
	s.governs(overriding, 12, 12)
}
