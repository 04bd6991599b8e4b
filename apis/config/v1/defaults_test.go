// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "github.com/espalier-scheduler/espalier/apis/config/v1"
)

func TestDefaults(t *testing.T) {
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	scheme := runtime.NewScheme()
	if err := configv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ in, want runtime.Object }{
		"preferences": {&configv1.PreferencesArgs{}, &configv1.PreferencesArgs{DefaultLevels: []configv1.Level{
			{Strategy: configv1.StrategySpread, Property: "topology.kubernetes.io/zone", NodesWithoutKey: configv1.NodesWithoutKeyLastResort},
			{Strategy: configv1.StrategySpread, Property: "kubernetes.io/hostname", NodesWithoutKey: configv1.NodesWithoutKeyLastResort},
		}}},
		"an empty list of levels stays one": {
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{}},
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{}},
		},
		"a level": {
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{{Property: "zone"}}},
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{
				{Strategy: configv1.StrategySpread, Property: "zone", NodesWithoutKey: configv1.NodesWithoutKeyLastResort},
			}},
		},
		"a level that says everything": {
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{
				{Strategy: configv1.StrategyPack, Property: "zone", NodesWithoutKey: configv1.NodesWithoutKeyExclude},
			}},
			&configv1.PreferencesArgs{DefaultLevels: []configv1.Level{
				{Strategy: configv1.StrategyPack, Property: "zone", NodesWithoutKey: configv1.NodesWithoutKeyExclude},
			}},
		},
		"host ports": {&configv1.HostPortsArgs{}, &configv1.HostPortsArgs{}},
		"domain limits": {
			&configv1.DomainLimitsArgs{DefaultLimits: []configv1.DomainLimit{{Property: "rack", MaxPods: 2}}},
			&configv1.DomainLimitsArgs{DefaultLimits: []configv1.DomainLimit{{Property: "rack", MaxPods: 2}}},
		},
		"faulty nodes": {
			&configv1.FaultyNodeArgs{},
			&configv1.FaultyNodeArgs{
				Threshold: new(int32(5)), Window: duration(5 * time.Minute), HalfOpen: new(true),
				ProvenAfter: duration(10 * time.Second), OwnErrors: configv1.OwnErrorsForgive,
				Record:   configv1.Record{Enabled: new(true), Namespace: "kube-system"},
				Suspects: configv1.Suspects{Workloads: new(int32(3))},
			},
		},
		"faulty nodes that are told everything": {
			&configv1.FaultyNodeArgs{
				Threshold: new(int32(0)), Window: duration(0), HalfOpen: new(false), ProvenAfter: duration(0), OwnErrors: configv1.OwnErrorsCount,
				Record:   configv1.Record{Enabled: new(false), Namespace: "there"},
				Suspects: configv1.Suspects{Workloads: new(int32(0))},
			},
			&configv1.FaultyNodeArgs{
				Threshold: new(int32(0)), Window: duration(0), HalfOpen: new(false), ProvenAfter: duration(0), OwnErrors: configv1.OwnErrorsCount,
				Record:   configv1.Record{Enabled: new(false), Namespace: "there"},
				Suspects: configv1.Suspects{Workloads: new(int32(0))},
			},
		},
		"tree": {
			&configv1.SpreadTreeArgs{},
			&configv1.SpreadTreeArgs{
				CountRevisions: configv1.CountNewest,
				NodeHint:       configv1.NodeHintEnabled,
			},
		},
		"a tree that says everything": {
			&configv1.SpreadTreeArgs{
				CountRevisions: configv1.CountAll,
				NodeHint:       configv1.NodeHintDisabled,
			},
			&configv1.SpreadTreeArgs{
				CountRevisions: configv1.CountAll,
				NodeHint:       configv1.NodeHintDisabled,
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

// A changed object must not change the defaults of the next one.
func TestDefaultsAreNotShared(t *testing.T) {
	var first, second configv1.FaultyNodeArgs
	configv1.SetDefaults_FaultyNodeArgs(&first)
	*first.Threshold, first.Window.Duration = 1, time.Hour
	configv1.SetDefaults_FaultyNodeArgs(&second)
	if *second.Threshold != 5 || second.Window.Duration != 5*time.Minute {
		t.Errorf("second object got threshold %d, window %v", *second.Threshold, second.Window)
	}
}
