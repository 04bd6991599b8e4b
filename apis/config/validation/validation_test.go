// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
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
		"none":          {nil, nil},
		"empty":         {[]config.Level{}, nil},
		"good":          {[]config.Level{on("topology.kubernetes.io/zone"), pack, on("kubernetes.io/hostname")}, nil},
		"shares":        {[]config.Level{all}, nil},
		"too many":      {manyLevels, [][]string{{"args.defaultLevels", "17", "16"}}},
		"no key":        {[]config.Level{on("")}, [][]string{{"args.defaultLevels[0].topologyKey", "empty key"}}},
		"Docker's name": {[]config.Level{on("zone"), on("node.id")}, [][]string{{"args.defaultLevels[1].topologyKey", `"node.id"`, "use the key of a node label"}}},
		"a key twice":   {[]config.Level{on("rack"), on("zone"), on("rack")}, [][]string{{"args.defaultLevels[2].topologyKey", `"rack"`, "level 1"}}},
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
		"share of nothing": {[]config.Level{shared(on("zone"), a(0))}, [][]string{{"args.defaultLevels[0].shares", "weight.a=0", "1 to 1000000"}}},
		"share too large":  {[]config.Level{shared(on("zone"), a(level.MaxShare+1))}, [][]string{{"args.defaultLevels[0].shares", "weight.a=1000001"}}},
		"value that no label has": {
			[]config.Level{shared(on("zone"), config.ValueShare{Value: "a b", Share: 1})}, [][]string{{"args.defaultLevels[0].shares", "weight.a b=1"}},
		},
		"no share for those unlisted": {[]config.Level{nobody}, [][]string{{"args.defaultLevels[0].unlistedShare", "0", "from 1 to 1000000"}}},
		"values that are none": {
			[]config.Level{shared(on("zone"), config.ValueShare{Value: "*", Share: 1}, config.ValueShare{Share: 1})},
			[][]string{{"args.defaultLevels[0].shares[0].value", `"*"`, "unlistedShare"}, {"args.defaultLevels[0].shares[1].value", "nodesWithoutKeyShare"}},
		},
		"too many shares":              {[]config.Level{shared(on("zone"), many...)}, [][]string{{"args.defaultLevels[0].shares", "255", "254"}}},
		"a value twice":                {[]config.Level{twice}, [][]string{{"args.defaultLevels[0].shares", "weight.a=2"}}},
		"shares at a level that packs": {[]config.Level{shared(pack, a(1))}, [][]string{{"args.defaultLevels[0].shares", "only a level that spreads"}}},
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
		change func(*config.SpreadTreeArgs)
		want   [][]string
	}{
		"the defaults": {func(*config.SpreadTreeArgs) {}, nil},
		"all revisions": {func(a *config.SpreadTreeArgs) {
			*a = config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: config.NodeHintDisabled, ScaleDown: config.ScaleDownAny, DecisionRecord: config.DecisionRecordDisabled}
		}, nil},
		"unknown revisions":            {func(a *config.SpreadTreeArgs) { a.CountRevisions = "newest" }, [][]string{{"args.countRevisions", `"newest"`, `"All", "Newest"`}}},
		"neither proposed nor not":     {func(a *config.SpreadTreeArgs) { a.NodeHint = "off" }, [][]string{{"args.nodeHint", `"off"`, `"Disabled", "Enabled"`}}},
		"neither even nor any":         {func(a *config.SpreadTreeArgs) { a.ScaleDown = "even" }, [][]string{{"args.scaleDown", `"even"`, `"Any", "Even"`}}},
		"neither written down nor not": {func(a *config.SpreadTreeArgs) { a.DecisionRecord = "on" }, [][]string{{"args.decisionRecord", `"on"`, `"Disabled", "Enabled"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.SpreadTreeArgs{CountRevisions: config.CountNewest, NodeHint: config.NodeHintEnabled, ScaleDown: config.ScaleDownEven, DecisionRecord: config.DecisionRecordEnabled}
			tc.change(args)
			check(t, validation.SpreadTreeArgs(field.NewPath("args"), args), tc.want)
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
		t.Run(name, func(t *testing.T) { check(t, validation.RecordingBinderArgs(field.NewPath("args"), &tc.args), tc.want) })
	}
}

// Without a path the messages begin at the arguments' own fields.
func TestNilPath(t *testing.T) {
	check(t, validation.SpreadTreeArgs(nil, &config.SpreadTreeArgs{}), [][]string{{"countRevisions"}, {"nodeHint"}, {"scaleDown"}, {"decisionRecord"}})
	check(t, validation.PreferencesArgs(nil, &config.PreferencesArgs{DefaultLevels: []config.Level{on("")}}), [][]string{{"defaultLevels[0].topologyKey"}})
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
		placementtest.WantParts(t, err.Error(), want[i][1:]...)
	}
}

// most is a limit of an argument.
func most(key string, pods int64) config.DomainLimit {
	return config.DomainLimit{TopologyKey: key, MaxPods: pods}
}

func TestDomainLimitsArgs(t *testing.T) {
	tooMany := make([]config.DomainLimit, limit.MaxLimits+1)
	for i := range tooMany {
		tooMany[i] = config.DomainLimit{TopologyKey: fmt.Sprintf("example.com/level-%d", i), MaxPods: 1}
	}
	for name, tc := range map[string]struct {
		limits []config.DomainLimit
		want   [][]string
	}{
		"none":              {nil, nil},
		"good":              {[]config.DomainLimit{most("kubernetes.io/hostname", 1), most("rack", 1000000)}, nil},
		"as many as may be": {tooMany[:limit.MaxLimits], nil},
		"too many":          {tooMany, [][]string{{"args.defaultLimits", "17", "16"}}},
		"no key":            {[]config.DomainLimit{most("", 1)}, [][]string{{"args.defaultLimits[0].topologyKey", "empty key"}}},
		"no number":         {[]config.DomainLimit{most("rack", 0)}, [][]string{{"args.defaultLimits[0].maxPods", "0", "from 1 to 1000000"}}},
		"everything of the second": {
			[]config.DomainLimit{most("zone", 1), most("node.id", -1)},
			[][]string{{"args.defaultLimits[1].topologyKey", `"node.id"`, "use the key of a node label"}, {"args.defaultLimits[1].maxPods", "-1", "from 1 to 1000000"}},
		},
		"a key twice": {
			[]config.DomainLimit{most("rack", 1), most("zone", 1), most("rack", 2)},
			[][]string{{"args.defaultLimits[2].topologyKey", `"rack"`, "limit 1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, validation.DomainLimitsArgs(field.NewPath("args"), &config.DomainLimitsArgs{DefaultLimits: tc.limits}), tc.want)
		})
	}
}

func TestLimits(t *testing.T) {
	got, errs := validation.Limits(nil, []config.DomainLimit{most("rack", 2), most("kubernetes.io/hostname", 1)})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := []limit.Limit{{Property: level.Property{Label: "rack"}, Pods: 2}, {Property: level.Property{Label: "kubernetes.io/hostname"}, Pods: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFaultyNodeArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*config.FaultyNodeArgs)
		want   [][]string
	}{
		"the defaults": {func(*config.FaultyNodeArgs) {}, nil},
		"the least of all": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.WindowSeconds, a.ProvenAfterSeconds, a.OwnErrors = 1, 1, 0, config.OwnErrorsCount
			a.Suspects.Workloads = 2
		}, nil},
		"the most of all": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.WindowSeconds, a.ProvenAfterSeconds = 1000, 24*3600, 3600
			a.Suspects.Workloads = 1000
		}, nil},
		"without a record, no namespace": {func(a *config.FaultyNodeArgs) { a.Record = config.Record{} }, nil},
		"nothing": {func(a *config.FaultyNodeArgs) { *a = config.FaultyNodeArgs{Record: config.Record{Enabled: true}} }, [][]string{
			{"args.threshold", "0", "from 1 to 1000"}, {"args.windowSeconds", "0", "from 1 to 86400"}, {"args.ownErrors", `"Count"`, `"Forgive"`},
			{"args.record.namespace", "lowercase"}, {"args.suspects.workloads", "0", "from 2 to 1000"},
		}},
		"too much": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.WindowSeconds, a.ProvenAfterSeconds = 1001, 24*3600+1, -1
			a.Suspects.Workloads = 1001
		}, [][]string{
			{"args.threshold", "1001"}, {"args.windowSeconds", "86401", "to 86400"}, {"args.provenAfterSeconds", "-1", "from 0 to 3600"},
			{"args.suspects.workloads", "1001"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.FaultyNodeArgs{
				Threshold: 5, WindowSeconds: 300, HalfOpen: true, ProvenAfterSeconds: 10, OwnErrors: config.OwnErrorsForgive,
				Record: config.Record{Enabled: true, Namespace: "kube-system"}, Suspects: config.Suspects{Workloads: 3},
			}
			tc.change(args)
			check(t, validation.FaultyNodeArgs(field.NewPath("args"), args), tc.want)
		})
	}
}

func TestHostPortsArgs(t *testing.T) {
	tooMany := make([]string, hostport.MaxRanges+1)
	for i := range tooMany {
		tooMany[i] = strconv.Itoa(i+1) + "/tcp"
	}
	for name, tc := range map[string]struct {
		reserved []string
		want     [][]string
	}{
		"none":     {nil, nil},
		"good":     {[]string{"22/tcp", " 8000-8010/UDP", "127.0.0.1:9100/tcp", "22/tcp"}, nil},
		"too many": {tooMany, [][]string{{"args.reserved", "257", "256"}}},
		"bad": {
			[]string{"22", "53/udp", "", "22/tcp,23/tcp"},
			[][]string{
				{"args.reserved[0]", `"22"`, "no protocol", "write a port as 22/tcp"},
				{"args.reserved[2]", "empty port"},
				{"args.reserved[3]", "unknown protocol", "use tcp, udp or sctp"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, validation.HostPortsArgs(field.NewPath("args"), &config.HostPortsArgs{Reserved: tc.reserved}), tc.want)
		})
	}
	ports, errs := validation.HostPorts(nil, []string{"80/tcp", "22/tcp", "80/TCP"})
	if got := hostport.Format(ports); len(errs) > 0 || got != "22/tcp,80/tcp" {
		t.Errorf("got %q, %v", got, errs.ToAggregate())
	}
}

func TestNodeSamplingArgs(t *testing.T) {
	good := config.NodeSamplingArgs{TopologyKey: "zone", GroupsBasisPoints: 10000, NodesBasisPoints: 1, Strategy: config.SamplingRandom, TimeoutMilliseconds: 100}
	if errs := validation.NodeSamplingArgs(nil, &good); len(errs) > 0 {
		t.Error(errs)
	}
	for name, change := range map[string]func(*config.NodeSamplingArgs){
		"topologyKey":         func(a *config.NodeSamplingArgs) { a.TopologyKey = "a zone" },
		"groupsBasisPoints":   func(a *config.NodeSamplingArgs) { a.GroupsBasisPoints = 0 },
		"nodesBasisPoints":    func(a *config.NodeSamplingArgs) { a.NodesBasisPoints = 10001 },
		"strategy":            func(a *config.NodeSamplingArgs) { a.Strategy = "Best" },
		"timeoutMilliseconds": func(a *config.NodeSamplingArgs) { a.TimeoutMilliseconds = 0 },
	} {
		args := good
		change(&args)
		errs := validation.PluginArgs(nil, &args)
		if len(errs) != 1 || !strings.Contains(errs[0].Field, name) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
