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
	return config.Level{Strategy: config.StrategySpread, TopologyKey: property, NodesWithoutKey: config.NodesWithoutKeyOwnDomain}
}

func TestPreferencesArgs(t *testing.T) {
	manyLevels := make([]config.Level, level.MaxLevels+1)
	for i := range manyLevels {
		manyLevels[i] = on(fmt.Sprintf("example.com/level-%d", i))
	}
	shared := func(l config.Level, shares ...config.ValueShare) config.Level {
		l.Shares = shares
		return l
	}
	a := func(share int64) config.ValueShare { return config.ValueShare{Value: "a", Share: share} }
	all := shared(on("zone"), a(70))
	all.UnlistedShare, all.NodesWithoutKeyShare = new(int64(30)), new(int64(1))
	nobody := on("zone")
	nobody.UnlistedShare = new(int64(0))
	var many []config.ValueShare
	for i := range 255 {
		many = append(many, config.ValueShare{Value: fmt.Sprint("v", i), Share: 1})
	}
	twice := shared(on("zone"), a(1), a(2))
	pack := on("rack")
	pack.Strategy = config.StrategyPack
	for name, tc := range map[string]struct {
		levels []config.Level
		// want are the errors in order, each as pieces of its text, the field's path first.
		want [][]string
	}{
		"none":     {nil, nil},
		"empty":    {[]config.Level{}, nil},
		"good":     {[]config.Level{on("topology.kubernetes.io/zone"), pack, on("kubernetes.io/hostname")}, nil},
		"shares":   {[]config.Level{all}, nil},
		"too many": {manyLevels, [][]string{{"args.defaultLevels", "17", "16"}}},
		"no key": {
			[]config.Level{on("")},
			[][]string{{"args.defaultLevels[0].topologyKey", "empty key"}},
		},
		"Docker's name": {
			[]config.Level{on("zone"), on("node.id")},
			[][]string{{"args.defaultLevels[1].topologyKey", `"node.id"`, "use the key of a node label"}},
		},
		"a key twice": {
			[]config.Level{on("rack"), on("zone"), on("rack")},
			[][]string{{"args.defaultLevels[2].topologyKey", `"rack"`, "level 1"}},
		},
		"every field of three levels": {
			[]config.Level{
				{Strategy: "spread", TopologyKey: "a b", NodesWithoutKey: "ownDomain"},
				{Strategy: config.StrategySpread, TopologyKey: "rack", NodesWithoutKey: config.NodesWithoutKeyExclude, Share: "Equal"},
				{Strategy: "Binpack", TopologyKey: "zone", NodesWithoutKey: config.NodesWithoutKeyOwnDomain},
			},
			[][]string{
				{"args.defaultLevels[0].strategy", `"spread"`, `"Spread"`, `"Pack"`},
				{"args.defaultLevels[0].nodesWithoutKey", `"ownDomain"`, `"LastResort"`, `"OwnDomain"`, `"Exclude"`},
				{"args.defaultLevels[0].topologyKey", `"a b"`},
				{"args.defaultLevels[1].share", `"Equal"`, `"Allocatable"`},
				{"args.defaultLevels[2].strategy", `"Binpack"`},
			},
		},
		"share of nothing": {
			[]config.Level{shared(on("zone"), a(0))},
			[][]string{{"args.defaultLevels[0].shares", "weight.a=0", "1 to 1000000"}},
		},
		"share too large": {
			[]config.Level{shared(on("zone"), a(level.MaxShare+1))},
			[][]string{{"args.defaultLevels[0].shares", "weight.a=1000001"}},
		},
		"value that no label has": {
			[]config.Level{shared(on("zone"), config.ValueShare{Value: "a b", Share: 1})},
			[][]string{{"args.defaultLevels[0].shares", "weight.a b=1"}},
		},
		"no share for those unlisted": {
			[]config.Level{nobody},
			[][]string{{"args.defaultLevels[0].unlistedShare", "0", "from 1 to 1000000"}},
		},
		"values that are none": {
			[]config.Level{shared(on("zone"), config.ValueShare{Value: "*", Share: 1}, config.ValueShare{Share: 1})},
			[][]string{{"args.defaultLevels[0].shares[0].value", `"*"`, "unlistedShare"}, {"args.defaultLevels[0].shares[1].value", "nodesWithoutKeyShare"}},
		},
		"too many shares": {
			[]config.Level{shared(on("zone"), many...)},
			[][]string{{"args.defaultLevels[0].shares", "255", "254"}},
		},
		"a value twice": {
			[]config.Level{twice},
			[][]string{{"args.defaultLevels[0].shares", "weight.a=2"}},
		},
		"shares at a level that packs": {
			[]config.Level{shared(pack, a(1))},
			[][]string{{"args.defaultLevels[0].shares", "only a level that spreads"}},
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
			Strategy: config.StrategySpread, TopologyKey: "zone", NodesWithoutKey: config.NodesWithoutKeyOwnDomain,
			Shares: []config.ValueShare{{Value: "b", Share: 30}, {Value: "a", Share: 60}}, UnlistedShare: new(int64(10)),
		},
		{Strategy: config.StrategyPack, TopologyKey: "kubernetes.io/hostname", NodesWithoutKey: config.NodesWithoutKeyExclude},
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := []level.Level{
		{
			Strategy: level.Spread, Property: level.Property{Label: "zone"}, NodesWithoutKey: level.OwnDomain,
			Weights: []level.Weight{{Value: "*", Share: 10}, {Value: "a", Share: 60}, {Value: "b", Share: 30}},
		},
		{Strategy: level.Pack, Property: level.Property{Label: "kubernetes.io/hostname"}, NodesWithoutKey: level.Exclude},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNodeLifetimeArgs(t *testing.T) {
	for leases, want := range map[config.Leases][][]string{
		config.LeasesDisabled: nil, config.LeasesAnnotations: nil, config.LeasesAnnotationsAndDeadlines: nil,
		"annotations": {{"args.leases", `"annotations"`, `"Annotations"`, `"AnnotationsAndDeadlines"`, `"Disabled"`}},
		"":            {{"args.leases", `""`}},
	} {
		check(t, validation.NodeLifetimeArgs(field.NewPath("args"), &config.NodeLifetimeArgs{Leases: leases}), want)
	}
}

func TestSpreadTreeArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		args config.SpreadTreeArgs
		want [][]string
	}{
		"the defaults":  {config.SpreadTreeArgs{CountRevisions: config.CountNewest, NodeHint: config.NodeHintEnabled, ScaleDown: config.ScaleDownEven, DecisionRecord: config.DecisionRecordEnabled}, nil},
		"all revisions": {config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: config.NodeHintDisabled, ScaleDown: config.ScaleDownAny, DecisionRecord: config.DecisionRecordDisabled}, nil},
		"unknown revisions": {
			config.SpreadTreeArgs{CountRevisions: "newest", NodeHint: config.NodeHintEnabled, ScaleDown: config.ScaleDownEven, DecisionRecord: config.DecisionRecordEnabled},
			[][]string{{"args.countRevisions", `"newest"`, `"All", "Newest"`}},
		},
		"neither proposed nor not": {
			config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: "off", ScaleDown: config.ScaleDownEven, DecisionRecord: config.DecisionRecordEnabled},
			[][]string{{"args.nodeHint", `"off"`, `"Disabled", "Enabled"`}},
		},
		"neither even nor any": {
			config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: config.NodeHintEnabled, ScaleDown: "even", DecisionRecord: config.DecisionRecordEnabled},
			[][]string{{"args.scaleDown", `"even"`, `"Any", "Even"`}},
		},
		"neither written down nor not": {
			config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: config.NodeHintEnabled, ScaleDown: config.ScaleDownEven, DecisionRecord: "on"},
			[][]string{{"args.decisionRecord", `"on"`, `"Disabled", "Enabled"`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, validation.SpreadTreeArgs(field.NewPath("args"), &tc.args), tc.want)
		})
	}
}

func TestRecordingBinderArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		args config.RecordingBinderArgs
		want [][]string
	}{
		"defaults": {config.RecordingBinderArgs{Candidates: 3, ScheduledEvents: config.ScheduledEventsAll}, nil},
		"the most": {config.RecordingBinderArgs{Candidates: 10, ScheduledEvents: config.ScheduledEventsSampled}, nil},
		"none, and unknown events": {
			config.RecordingBinderArgs{ScheduledEvents: "off"},
			[][]string{{"args.candidates", "0", "from 1 to 10"}, {"args.scheduledEvents", `"off"`, `"All", "Off", "Sampled"`}},
		},
		"too many": {config.RecordingBinderArgs{Candidates: 11, ScheduledEvents: config.ScheduledEventsOff}, [][]string{{"args.candidates", "11"}}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, validation.RecordingBinderArgs(field.NewPath("args"), &tc.args), tc.want)
		})
	}
}

// Without a path the messages begin at the arguments' own fields.
func TestNilPath(t *testing.T) {
	check(t, validation.SpreadTreeArgs(nil, &config.SpreadTreeArgs{}), [][]string{{"countRevisions"}, {"nodeHint"}, {"scaleDown"}, {"decisionRecord"}})
	check(t, validation.PreferencesArgs(nil, &config.PreferencesArgs{DefaultLevels: []config.Level{on("")}}),
		[][]string{{"defaultLevels[0].topologyKey"}})
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
