// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// startController starts the controller with the rights that the manifests give it.
func startController(ctx context.Context) (*rig.Process, error) {
	binary, err := rig.Binary("espalier-controller", binFolder)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(world.dir, "controller.kubeconfig")
	if err := rig.WriteKubeconfig(ctx, world.config, world.client, rig.ControllerName, path); err != nil {
		return nil, err
	}
	port, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	world.controllerMetrics = "https://127.0.0.1:" + port + "/metrics"
	if world.metricsToken, err = rig.ReaderToken(ctx, world.client, rig.SchedulerNamespace, "e2e-metrics", "/metrics"); err != nil {
		return nil, err
	}
	// No webhook is installed, so that nobody asks the arbiter; its metrics are there.
	arbiterPort, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	arbiterFlags := []string{"--arbiter", "--arbiter-address=127.0.0.1", "--arbiter-port=" + arbiterPort}
	return rig.Start(rig.Command{
		Name: rig.ControllerName, Path: binary, Dir: world.dir,
		Args: slices.Concat([]string{
			"--kubeconfig=" + path, "--health-probe-bind-address=0", "--metrics-bind-address=127.0.0.1:" + port, "--v=2", lifecycleGate,
			"--move-drained=Blocked", "--moves-at-once=200", "--keep-disconnected", "--allocations",
		}, rebalanceFlags, restartFlags, repairFlags, lifetimeFlags, arbiterFlags),
	})
}

// governs makes a policy for the pods of an app. The first stories may come before the definition is served.
func (s *story) governs(name, app string, spec placementv1alpha1.PlacementPolicySpec) *placementv1alpha1.PlacementPolicy {
	s.Helper()
	p := named[placementv1alpha1.PlacementPolicy](s, name)
	p.Spec = spec
	p.Spec.PodSelector = *selects(app)
	s.until(title(p)+" to be created", func() error { return world.objects.Create(s.ctx, p) })
	return p
}

// policy is governs for levels.
func (s *story) policy(name, app string, levels ...placementv1alpha1.Level) *placementv1alpha1.PlacementPolicy {
	s.Helper()
	return s.governs(name, app, placementv1alpha1.PlacementPolicySpec{Levels: levels})
}

// replace gives a policy other levels.
func (s *story) replace(p *placementv1alpha1.PlacementPolicy, levels ...placementv1alpha1.Level) {
	s.Helper()
	before := p.DeepCopy()
	p.Spec.Levels = levels
	s.must(world.objects.Patch(s.ctx, p, client.MergeFrom(before)), "changing policy "+p.Name)
}

// status waits until the status is about the policy as it is now, governs so many pods, and has each of these conditions: TYPE=REASON.
func (s *story) status(p *placementv1alpha1.PlacementPolicy, governed int32, conditions ...string) {
	s.Helper()
	becomes(s, p.Name, "the status of policy "+p.Name, func(got *placementv1alpha1.PlacementPolicy) error {
		if got.Status.ObservedGeneration != got.Generation || ptr.Deref(got.Status.GovernedPods, -1) != governed {
			return fmt.Errorf("generation %d of %d, governing %d pods: %v", got.Status.ObservedGeneration, got.Generation, ptr.Deref(got.Status.GovernedPods, -1), got.Status.Conditions)
		}
		for _, want := range conditions {
			kind, reason, _ := strings.Cut(want, "=")
			if has := meta.FindStatusCondition(got.Status.Conditions, kind); has == nil || has.Reason != reason {
				return fmt.Errorf("%s is %v, want %s", kind, has, reason)
			}
		}
		return nil
	})
}

func over(key placementv1alpha1.TopologyKey) placementv1alpha1.Level {
	return placementv1alpha1.Level{TopologyKey: key}
}

// placedBy wants each pod to say by what it was placed.
func (s *story) placedBy(o *rig.Observation, want string) {
	s.Helper()
	for i := range o.Pods {
		if got := o.Pods[i].Annotations["espalier.dev/placed-by"]; got != want {
			s.Errorf("pod %s was placed by %q, want %q", o.Pods[i].Name, got, want)
		}
	}
}

// Pods that wait because of a policy are placed when it changes, and when it is deleted. Nothing else happens that could wake them.
func TestPolicyWakesPods(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.zones(20, 1, 1)
	excluding := over(rowLabel)
	excluding.NodesWithoutKey = placementv1alpha1.NodesWithoutKeyExclude
	refused := func(name string) {
		s.Helper()
		s.refusedSoon(name, s.template(name, ""))
		s.refusedFor(name, "didn't have a property that the pod's placement requires")
	}
	p := s.policy("changed", "changed", excluding)
	s.status(p, 0)
	refused("changed")
	s.replace(p, over(zoneLabel))
	s.settled("changed", 1)
	p = s.policy("deleted", "deleted", excluding)
	s.status(p, 0)
	refused("deleted")
	s.status(p, 1)
	s.delete(p)
	s.settled("deleted", 1)
}

// Of two policies for the same pods the older one governs, though its name is the
// second, and both say so. When it is deleted the other one takes its place.
func TestPoliciesInConflict(t *testing.T) {
	s := begin(t, spread, byZone, byRack)
	s.nodes(1, 40, place("zone-a", "rack-1"))
	s.nodes(1, 40, place("zone-a", "rack-2"))
	s.nodes(1, 40, place("zone-b", "rack-3"))
	older := s.policy("b-older", "app", over(zoneLabel))
	s.until("a second to pass", func() error {
		return errorIf(time.Since(older.CreationTimestamp.Time) < 2*time.Second, "policies made within it would be of the same age")
	})
	younger := s.policy("a-younger", "app", over(rackLabel))
	s.status(younger, 0)
	o := s.deployed("app", 12, "")
	s.exactly(o, 0, map[string]int{"zone-a": 6, "zone-b": 6})
	s.status(older, 12, "Conflicted=PolicyAfter", "Ready=InForce")
	s.status(younger, 0, "Conflicted=PolicyBefore", "Ready=Overruled")
	s.delete(older)
	s.status(younger, 0, "Conflicted=NoConflict", "Ready=InForce") // what runs was placed by the older one
	s.roll("app", "2")
	s.exactly(s.settled("app", 12), 1, map[string]int{"rack-1": 4, "rack-2": 4, "rack-3": 4})
	s.status(younger, 12, "Conflicted=NoConflict", "Ready=InForce")

	// An annotation comes before any policy, and the status says that as well.
	s.pod("own", s.template("app", "spread="+zoneLabel))
	s.status(younger, 12, "Ready=InForce")
}

// What could not be read is refused by the API server when it is written. Which keys are is told by manifests, TestKeysOfPoliciesAreReadAlike.
func TestMalformedPolicyIsRefused(t *testing.T) {
	s := begin(t, spread.core())
	s.delete(s.policy("served", "app", over(zoneLabel)))
	weighted := func(strategy placementv1alpha1.Strategy, property placementv1alpha1.TopologyKey, w ...placementv1alpha1.ValueShare) placementv1alpha1.PlacementPolicySpec {
		return placementv1alpha1.PlacementPolicySpec{Levels: []placementv1alpha1.Level{{Strategy: strategy, TopologyKey: property, Shares: w}}}
	}
	selecting := func(selector metav1.LabelSelector) placementv1alpha1.PlacementPolicySpec {
		return placementv1alpha1.PlacementPolicySpec{PodSelector: selector, Levels: []placementv1alpha1.Level{over("a")}}
	}
	odd := over("a")
	odd.NodesWithoutKeyShare = new(int64(3))
	for name, tc := range map[string]struct {
		spec placementv1alpha1.PlacementPolicySpec
		want string
	}{
		"nothing":       {placementv1alpha1.PlacementPolicySpec{Priority: 1}, "a policy says something"},
		"no spec":       {placementv1alpha1.PlacementPolicySpec{}, "spec: Required value"},
		"node.id":       {placementv1alpha1.PlacementPolicySpec{Levels: []placementv1alpha1.Level{over("node.id")}}, "use the key of a node label"},
		"strategy":      {weighted("Sprad", "a"), "Sprad"},
		"twice":         {placementv1alpha1.PlacementPolicySpec{Levels: []placementv1alpha1.Level{over("a"), over("a")}}, "name each key once"},
		"limited twice": {placementv1alpha1.PlacementPolicySpec{DomainLimits: []placementv1alpha1.DomainLimit{{TopologyKey: "a", MaxPods: 1}, {TopologyKey: "a", MaxPods: 2}}}, "Duplicate value"},
		"packed weight": {weighted("Pack", "a", placementv1alpha1.ValueShare{Value: "a", Share: 1}), "only a level that spreads has shares"},
		"share":         {weighted("Spread", "a", placementv1alpha1.ValueShare{Value: "a", Share: 1000001}), "1000000"},
		"value":         {weighted("Spread", "a", placementv1alpha1.ValueShare{Value: "a b", Share: 1}), "spec.levels[0].shares[0].value"},
		"limit":         {placementv1alpha1.PlacementPolicySpec{DomainLimits: []placementv1alpha1.DomainLimit{{TopologyKey: "a"}}}, "maxPods"},
		"window":        {placementv1alpha1.PlacementPolicySpec{Faults: &placementv1alpha1.Faults{WindowSeconds: new(int32(86401))}}, "86400"},
		"no moves":      {placementv1alpha1.PlacementPolicySpec{Moves: &placementv1alpha1.Moves{}}, "have at least 1"},
		"some drained":  {placementv1alpha1.PlacementPolicySpec{Moves: &placementv1alpha1.Moves{Drained: "Some"}}, `supported values: "None", "Blocked", "All"`},
		"rebalance":     {placementv1alpha1.PlacementPolicySpec{Moves: &placementv1alpha1.Moves{Rebalance: "Maybe"}}, `supported values: "Enabled", "Disabled"`},
		"no own domain": {placementv1alpha1.PlacementPolicySpec{Levels: []placementv1alpha1.Level{odd}}, "OwnDomain alone"},
		"selector":      {selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Inn"}}}), "operators are In and NotIn"},
		"long label":    {selecting(metav1.LabelSelector{MatchLabels: map[string]string{"app": strings.Repeat("a", 64)}}), "63 characters at most"},
	} {
		p := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "bad"}, Spec: tc.spec}
		if err := world.objects.Create(s.ctx, p); err == nil || !strings.Contains(err.Error(), tc.want) {
			s.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// clusterPolicy creates a policy of the cluster over racks, for the pods of an app in the namespaces that have a label team with the
// name of the story.
func (s *story) clusterPolicy(name, app string, mode placementv1alpha1.Mode) *placementv1alpha1.ClusterPlacementPolicy {
	s.Helper()
	p := &placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + name}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": s.name}
	p.Spec.PlacementPolicySpec = placementv1alpha1.PlacementPolicySpec{PodSelector: *selects(app), Mode: mode, Levels: []placementv1alpha1.Level{over(rackLabel)}}
	s.create(p)
	return p
}

// counted waits until the status of a policy of the cluster says that it selects and governs so many pods.
func (s *story) counted(p *placementv1alpha1.ClusterPlacementPolicy, selected, governed int32) {
	s.Helper()
	becomes(s, p.Name, "the status of policy "+p.Name, func(got *placementv1alpha1.ClusterPlacementPolicy) error {
		is := ptr.Deref(got.Status.SelectedPods, -1) == selected && ptr.Deref(got.Status.GovernedPods, -1) == governed
		return errorIf(!is, "it is %+v, and not of %d pods and %d", got.Status, selected, governed)
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
	s.counted(byDefault, 0, 0)
	s.deploy("app", 12, "")
	zones, racks := map[string]int{"zone-a": 6, "zone-b": 6}, map[string]int{"rack-1": 4, "rack-2": 4, "rack-3": 4}
	s.exactly(s.settled("app", 12), 0, zones) // the namespace is not selected

	s.alter(named[corev1.Namespace](s, s.ns), `{"metadata":{"labels":{"team":%q}}}`, s.name)
	s.counted(byDefault, 12, 0) // what runs was placed before
	s.roll("app", "2")
	o := s.settled("app", 12)
	s.exactly(o, 1, racks)
	s.placedBy(o, "clusterpolicy/"+byDefault.Name+"@1 spread="+rackLabel+";nodesWithoutKey=LastResort")
	s.counted(byDefault, 12, 12)

	// A policy of the namespace takes its place, and gives way to one of the cluster that overrides.
	s.status(s.policy("own", "app", over(zoneLabel), over(corev1.LabelHostname)), 0, "Conflicted=NoConflict", "Ready=InForce")
	s.roll("app", "3")
	s.exactly(s.settled("app", 12), 0, zones)
	s.counted(byDefault, 12, 0)
	overriding := s.clusterPolicy("override", "app", placementv1alpha1.ModeOverride)
	s.counted(overriding, 12, 0)
	s.roll("app", "4")
	s.exactly(s.settled("app", 12), 1, racks)
	s.counted(overriding, 12, 12)
}
