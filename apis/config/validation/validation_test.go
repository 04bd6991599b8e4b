// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// on is a level that only a case's own change makes bad.
func on(property string) config.Level {
	return config.Level{Strategy: config.StrategySpread, Property: property, NodesWithoutKey: config.NodesWithoutKeyOwnDomain}
}

func TestPreferencesArgs(t *testing.T) {
	manyLevels := make([]config.Level, level.MaxLevels+1)
	for i := range manyLevels {
		manyLevels[i] = on(fmt.Sprintf("example.com/level-%d", i))
	}
	weighted := func(l config.Level, weights map[string]int64) config.Level {
		l.Weights = weights
		return l
	}
	pack := on("rack")
	pack.Strategy = config.StrategyPack
	for name, tc := range map[string]struct {
		levels []config.Level
		// want are the errors in order, each as pieces of its text, the field's path first.
		want [][]string
	}{
		"none":     {nil, nil},
		"empty":    {[]config.Level{}, nil},
		"good":     {[]config.Level{on("topology.kubernetes.io/zone"), pack, on("node.name")}, nil},
		"weights":  {[]config.Level{weighted(on("zone"), map[string]int64{"a": 70, "*": 30, "": 1})}, nil},
		"too many": {manyLevels, [][]string{{"args.defaultLevels", "17", "16"}}},
		"no property": {
			[]config.Level{on("")},
			[][]string{{"args.defaultLevels[0].property", "empty property"}},
		},
		"unknown property": {
			[]config.Level{on("zone"), on("node.id")},
			[][]string{{"args.defaultLevels[1].property", `"node.id"`, "use node.name or"}},
		},
		"a property twice, spelled in two ways": {
			[]config.Level{on("rack"), on("zone"), on("node.labels.rack")},
			[][]string{{"args.defaultLevels[2].property", `"node.labels.rack"`, "level 1"}},
		},
		"every field of three levels": {
			[]config.Level{
				{Strategy: "spread", Property: "a b", NodesWithoutKey: "ownDomain"},
				{Strategy: config.StrategySpread, Property: "rack", NodesWithoutKey: config.NodesWithoutKeyExclude, Share: "Equal"},
				{Strategy: "Binpack", Property: "zone", NodesWithoutKey: config.NodesWithoutKeyOwnDomain},
			},
			[][]string{
				{"args.defaultLevels[0].strategy", `"spread"`, `"Spread"`, `"Pack"`},
				{"args.defaultLevels[0].nodesWithoutKey", `"ownDomain"`, `"LastResort"`, `"OwnDomain"`, `"Exclude"`},
				{"args.defaultLevels[0].property", `"a b"`},
				{"args.defaultLevels[1].share", `"Equal"`, `"Allocatable"`},
				{"args.defaultLevels[2].strategy", `"Binpack"`},
			},
		},
		"share of nothing": {
			[]config.Level{weighted(on("zone"), map[string]int64{"a": 0, "b": 5})},
			[][]string{{"args.defaultLevels[0].weights", "weight.a=0", "1 to 1000000"}},
		},
		"share too large": {
			[]config.Level{weighted(on("zone"), map[string]int64{"a": level.MaxShare + 1})},
			[][]string{{"args.defaultLevels[0].weights", "weight.a=1000001"}},
		},
		"value that no label has": {
			[]config.Level{weighted(on("zone"), map[string]int64{"a b": 1})},
			[][]string{{"args.defaultLevels[0].weights", "weight.a b=1"}},
		},
		"weights at a level that packs": {
			[]config.Level{weighted(pack, map[string]int64{"a": 1})},
			[][]string{{"args.defaultLevels[0].weights", "only a level that spreads"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := validation.PreferencesArgs(field.NewPath("args"), &config.PreferencesArgs{DefaultLevels: tc.levels})
			check(t, got, tc.want)
		})
	}
}

func TestLevels(t *testing.T) {
	got, errs := validation.Levels(nil, []config.Level{
		{
			Strategy: config.StrategySpread, Property: "engine.labels.zone", NodesWithoutKey: config.NodesWithoutKeyOwnDomain,
			Weights: map[string]int64{"b": 30, "*": 10, "a": 60},
		},
		{Strategy: config.StrategyPack, Property: "node.name", NodesWithoutKey: config.NodesWithoutKeyExclude},
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := []level.Level{
		{
			Strategy: level.Spread, Property: level.Property{Label: "zone"}, NodesWithoutKey: level.OwnDomain,
			Weights: []level.Weight{{Value: "*", Share: 10}, {Value: "a", Share: 60}, {Value: "b", Share: 30}},
		},
		{Strategy: level.Pack, NodesWithoutKey: level.Exclude},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSpreadTreeArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		args config.SpreadTreeArgs
		want [][]string
	}{
		"the defaults":  {config.SpreadTreeArgs{CountRevisions: config.CountNewest, NodeHint: config.NodeHintEnabled}, nil},
		"all revisions": {config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: config.NodeHintDisabled}, nil},
		"unknown revisions": {
			config.SpreadTreeArgs{CountRevisions: "newest", NodeHint: config.NodeHintEnabled},
			[][]string{{"args.countRevisions", `"newest"`, `"All", "Newest"`}},
		},
		"neither proposed nor not": {
			config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: "off"},
			[][]string{{"args.nodeHint", `"off"`, `"Disabled", "Enabled"`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, validation.SpreadTreeArgs(field.NewPath("args"), &tc.args), tc.want)
		})
	}
}

// Without a path the messages begin at the arguments' own fields.
func TestNilPath(t *testing.T) {
	check(t, validation.SpreadTreeArgs(nil, &config.SpreadTreeArgs{}), [][]string{{"countRevisions"}, {"nodeHint"}})
	check(t, validation.PreferencesArgs(nil, &config.PreferencesArgs{DefaultLevels: []config.Level{on("")}}),
		[][]string{{"defaultLevels[0].property"}})
}

func check(t *testing.T, got field.ErrorList, want [][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d errors, want %d: %v", len(got), len(want), got)
	}
	for i, err := range got {
		if err.Field != want[i][0] {
			t.Errorf("error %d is about %q, want %q: %v", i, err.Field, want[i][0], err)
		}
		for _, piece := range want[i][1:] {
			if !strings.Contains(err.Error(), piece) {
				t.Errorf("error %d %q does not say %q", i, err, piece)
			}
		}
	}
}
