// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "github.com/espalier-scheduler/espalier/apis/config/v1"
)

func TestDefaults(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := configv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ in, want runtime.Object }{
		"preferences": {&configv1.PreferencesArgs{}, &configv1.PreferencesArgs{DefaultLevels: []configv1.Level{
			{Strategy: configv1.StrategySpread, TopologyKey: "topology.kubernetes.io/zone", NodesWithoutKey: configv1.NodesWithoutKeyLastResort},
			{Strategy: configv1.StrategySpread, TopologyKey: "kubernetes.io/hostname", NodesWithoutKey: configv1.NodesWithoutKeyLastResort},
		}}},
		"a level": {
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{{TopologyKey: "zone"}}},
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{
				{Strategy: configv1.StrategySpread, TopologyKey: "zone", NodesWithoutKey: configv1.NodesWithoutKeyLastResort},
			}},
		},
		"bindings":   {&configv1.RecordingBinderArgs{}, &configv1.RecordingBinderArgs{Candidates: new(int32(3)), ScheduledEvents: configv1.ScheduledEventsAll}},
		"host ports": {&configv1.HostPortsArgs{}, &configv1.HostPortsArgs{}},
		"faulty nodes": {
			&configv1.FaultyNodeArgs{},
			&configv1.FaultyNodeArgs{
				Threshold: new(int32(5)), WindowSeconds: new(int32(300)), HalfOpen: new(true),
				ProvenAfterSeconds: new(int32(10)), OwnErrors: configv1.OwnErrorsForgive,
				Record:   configv1.Record{Enabled: new(true), Namespace: "kube-system"},
				Suspects: configv1.Suspects{Workloads: new(int32(3))},
			},
		},
		"lifetimes": {&configv1.NodeLifetimeArgs{}, &configv1.NodeLifetimeArgs{Leases: configv1.LeasesDisabled}},
		"samples": {
			&configv1.NodeSamplingArgs{},
			&configv1.NodeSamplingArgs{
				TopologyKey: "topology.kubernetes.io/zone", GroupsBasisPoints: new(int32(10000)), NodesBasisPoints: new(int32(1000)),
				Strategy: configv1.SamplingRandom, TimeoutMilliseconds: new(int32(100)),
			},
		},
		"tree": {
			&configv1.SpreadTreeArgs{},
			&configv1.SpreadTreeArgs{
				CountRevisions: configv1.CountNewest,
				NodeHint:       configv1.NodeHintEnabled,
				ScaleDown:      configv1.ScaleDownEven,
				DecisionRecord: configv1.DecisionRecordEnabled,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme.Default(tc.in)
			if diff := cmp.Diff(tc.want, tc.in); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is written is kept, be it zero or empty.
func TestWrittenValuesAreKept(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := configv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, written := range []runtime.Object{
		&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{}},
		&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{
			{Strategy: configv1.StrategyPack, TopologyKey: "zone", NodesWithoutKey: configv1.NodesWithoutKeyExclude},
		}},
		&configv1.RecordingBinderArgs{Candidates: new(int32(0)), ScheduledEvents: configv1.ScheduledEventsOff},
		&configv1.DomainLimitsArgs{DefaultLimits: []configv1.DomainLimit{{TopologyKey: "rack", MaxPods: 2}}},
		&configv1.FaultyNodeArgs{
			Threshold: new(int32(0)), WindowSeconds: new(int32(0)), HalfOpen: new(false), ProvenAfterSeconds: new(int32(0)), OwnErrors: configv1.OwnErrorsCount,
			Record:   configv1.Record{Enabled: new(false), Namespace: "there"},
			Suspects: configv1.Suspects{Workloads: new(int32(0))},
		},
		&configv1.NodeLifetimeArgs{Leases: configv1.LeasesAnnotations},
		&configv1.NodeSamplingArgs{
			TopologyKey: "rack", GroupsBasisPoints: new(int32(0)), NodesBasisPoints: new(int32(0)),
			Strategy: configv1.SamplingRoundRobin, TimeoutMilliseconds: new(int32(0)),
		},
		&configv1.SpreadTreeArgs{
			CountRevisions: configv1.CountAll, NodeHint: configv1.NodeHintDisabled, ScaleDown: configv1.ScaleDownAny, DecisionRecord: configv1.DecisionRecordDisabled,
		},
	} {
		defaulted := written.DeepCopyObject()
		scheme.Default(defaulted)
		if diff := cmp.Diff(written, defaulted); diff != "" {
			t.Errorf("%T: %s", written, diff)
		}
	}
}

// A changed object must not change the defaults of the next one.
func TestDefaultsAreNotShared(t *testing.T) {
	var first, second configv1.FaultyNodeArgs
	configv1.SetDefaults_FaultyNodeArgs(&first)
	*first.Threshold, *first.WindowSeconds = 1, 3600
	configv1.SetDefaults_FaultyNodeArgs(&second)
	if *second.Threshold != 5 || *second.WindowSeconds != 300 {
		t.Errorf("second object got threshold %d, window %v", *second.Threshold, *second.WindowSeconds)
	}
}
