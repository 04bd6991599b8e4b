// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "github.com/espalier-scheduler/espalier/apis/config/v1"
)

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
			Record: configv1.Record{Enabled: new(false), Namespace: "there"}, Suspects: configv1.Suspects{Workloads: new(int32(0))},
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
