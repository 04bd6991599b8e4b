// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	schedulerconfigv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/apis/config"
	_ "github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// decode reads a configuration as kube-scheduler's --config does.
func decode(t *testing.T, pluginConfig string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	t.Helper()
	text := "apiVersion: kubescheduler.config.k8s.io/v1\n" +
		"kind: KubeSchedulerConfiguration\n" +
		"profiles:\n" +
		"- schedulerName: espalier-scheduler\n" +
		"  plugins:\n" +
		"    multiPoint:\n" +
		"      enabled: [{name: Preferences}, {name: DomainLimits}, {name: FaultyNode}, {name: NodeLifetime}, {name: SpreadTree, weight: 100}, {name: HostPorts}, {name: RecordingBinder}, {name: NodeSampling}]\n" + pluginConfig
	obj, _, err := schedulerscheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("decoded a %T", obj)
	}
	return cfg, nil
}

// wantArgs wants these internal arguments of plugins of the only profile.
func wantArgs(t *testing.T, cfg *schedulerconfig.KubeSchedulerConfiguration, want map[string]runtime.Object) {
	t.Helper()
	got := make(map[string]runtime.Object)
	for _, pc := range cfg.Profiles[0].PluginConfig {
		if want[pc.Name] != nil {
			got[pc.Name] = pc.Args
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

var defaultFaults = config.FaultyNodeArgs{
	Threshold: 5, WindowSeconds: 300, HalfOpen: true, ProvenAfterSeconds: 10, OwnErrors: config.OwnErrorsForgive,
	Record: config.Record{Enabled: true, Namespace: "kube-system"}, Suspects: config.Suspects{Workloads: 3},
}

var defaultPreferences = config.PreferencesArgs{DefaultLevels: []config.Level{
	{Strategy: config.StrategySpread, TopologyKey: "topology.kubernetes.io/zone", NodesWithoutKey: config.NodesWithoutKeyLastResort},
	{Strategy: config.StrategySpread, TopologyKey: "kubernetes.io/hostname", NodesWithoutKey: config.NodesWithoutKeyLastResort},
}}

var defaultTree = config.SpreadTreeArgs{
	CountRevisions: config.CountNewest, NodeHint: config.NodeHintEnabled, ScaleDown: config.ScaleDownEven,
	DecisionRecord: config.DecisionRecordEnabled,
}

var defaultBinder = config.RecordingBinderArgs{Candidates: 3, ScheduledEvents: config.ScheduledEventsAll}

// Plugins without a pluginConfig must get typed, defaulted arguments too.
func TestPluginsWithoutConfigGetDefaults(t *testing.T) {
	cfg, err := decode(t, "")
	must(t, err)
	wantArgs(t, cfg, map[string]runtime.Object{
		"Preferences": &defaultPreferences, "HostPorts": &config.HostPortsArgs{}, "DomainLimits": &config.DomainLimitsArgs{}, "FaultyNode": &defaultFaults,
		"NodeLifetime": &config.NodeLifetimeArgs{Leases: config.LeasesDisabled}, "SpreadTree": &defaultTree, "RecordingBinder": &defaultBinder,
		"NodeSampling": &config.NodeSamplingArgs{
			TopologyKey: "topology.kubernetes.io/zone", GroupsBasisPoints: 10000, NodesBasisPoints: 1000, Strategy: config.SamplingRandom, TimeoutMilliseconds: 100,
		},
	})
}

const everything = `  pluginConfig:
  - name: Preferences
    args:
      defaultLevels:
      - topologyKey: topology.kubernetes.io/zone
        shares: [{value: zone-a, share: 70}]
        unlistedShare: 30
        nodesWithoutKeyShare: 5
      - strategy: Pack
        topologyKey: rack
        nodesWithoutKey: Exclude
  - name: DomainLimits
    args:
      defaultLimits: [{topologyKey: kubernetes.io/hostname, maxPods: 1}]
  - name: SpreadTree
    args:
      countRevisions: All
      nodeHint: Disabled
      scaleDown: Any
      decisionRecord: Disabled
  - name: FaultyNode
    args: {windowSeconds: 50, record: {enabled: false}}
  - name: RecordingBinder
    args: {candidates: 1, scheduledEvents: Off}
  - name: HostPorts
    args: {reserved: [22/tcp, "127.0.0.1:9100/tcp"]}
`

func TestWrittenValuesAreKeptAndTheRestDefaulted(t *testing.T) {
	cfg, err := decode(t, everything)
	must(t, err)
	faults := defaultFaults
	faults.WindowSeconds, faults.Record.Enabled = 50, false
	wantArgs(t, cfg, map[string]runtime.Object{
		"Preferences": &config.PreferencesArgs{DefaultLevels: []config.Level{
			{
				Strategy: config.StrategySpread, TopologyKey: "topology.kubernetes.io/zone", NodesWithoutKey: config.NodesWithoutKeyLastResort,
				Shares: []config.ValueShare{{Value: "zone-a", Share: 70}}, UnlistedShare: new(int64(30)), NodesWithoutKeyShare: new(int64(5)),
			},
			{Strategy: config.StrategyPack, TopologyKey: "rack", NodesWithoutKey: config.NodesWithoutKeyExclude},
		}},
		"HostPorts":       &config.HostPortsArgs{Reserved: []string{"22/tcp", "127.0.0.1:9100/tcp"}},
		"DomainLimits":    &config.DomainLimitsArgs{DefaultLimits: []config.DomainLimit{{TopologyKey: "kubernetes.io/hostname", MaxPods: 1}}},
		"SpreadTree":      &config.SpreadTreeArgs{CountRevisions: config.CountAll, NodeHint: config.NodeHintDisabled, ScaleDown: config.ScaleDownAny, DecisionRecord: config.DecisionRecordDisabled},
		"RecordingBinder": &config.RecordingBinderArgs{Candidates: 1, ScheduledEvents: config.ScheduledEventsOff},
		"FaultyNode":      &faults,
	})
}

// A zero that was written is a value, not an absence.
func TestWrittenZeroIsKept(t *testing.T) {
	cfg, err := decode(t, "  pluginConfig: [{name: FaultyNode, args: {threshold: 0, provenAfterSeconds: 0}}]\n")
	must(t, err)
	faults := defaultFaults
	faults.Threshold, faults.ProvenAfterSeconds = 0, 0
	wantArgs(t, cfg, map[string]runtime.Object{"FaultyNode": &faults})
}

func TestDecodingIsStrict(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		want   []string
	}{
		"unknown field": {
			"  pluginConfig: [{name: Preferences, args: {defaultLevel: []}}]\n",
			[]string{"profiles[0].pluginConfig[0]", "plugin Preferences", `unknown field "defaultLevel"`},
		},
		"unknown field inside a level": {
			"  pluginConfig: [{name: Preferences, args: {defaultLevels: [{topologyKey: zone, weight: {}}]}}]\n",
			[]string{"plugin Preferences", `unknown field "defaultLevels[0].weight"`},
		},
		"unknown field inside a limit": {
			"  pluginConfig: [{name: DomainLimits, args: {defaultLimits: [{topologyKey: zone, pods: 1}]}}]\n",
			[]string{"plugin DomainLimits", `unknown field "defaultLimits[0].pods"`},
		},
		"duplicate field":         {"  pluginConfig: [{name: SpreadTree, args: {countRevisions: All, countRevisions: Newest}}]\n", []string{`"countRevisions" already set`}},
		"not a number of seconds": {"  pluginConfig: [{name: FaultyNode, args: {windowSeconds: soon}}]\n", []string{"plugin FaultyNode", "windowSeconds"}},
		"events that are neither": {"  pluginConfig: [{name: RecordingBinder, args: {scheduledEvents: true}}]\n", []string{"plugin RecordingBinder", "bool"}},
		"a share that is no number": {
			"  pluginConfig: [{name: Preferences, args: {defaultLevels: [{topologyKey: zone, shares: [{value: a, share: many}]}]}}]\n",
			[]string{"plugin Preferences", "share"},
		},
		"arguments of another plugin": {
			"  pluginConfig: [{name: SpreadTree, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: PreferencesArgs}}]\n",
			[]string{"SpreadTreeArgs", "PreferencesArgs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(t, tc.config)
			if err == nil {
				t.Fatal("accepted")
			}
			placementtest.WantParts(t, err.Error(), tc.want...)
		})
	}
}

// What is written out, for --write-config-to, reads back as the same.
func TestRoundTrip(t *testing.T) {
	cfg, err := decode(t, everything)
	must(t, err)
	const mediaType = runtime.ContentTypeYAML
	info, ok := runtime.SerializerInfoForMediaType(schedulerscheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("no serializer for %s", mediaType)
	}
	var buf bytes.Buffer
	encoder := schedulerscheme.Codecs.EncoderForVersion(info.Serializer, schedulerconfigv1.SchemeGroupVersion)
	must(t, encoder.Encode(cfg, &buf))
	if err := yaml.UnmarshalStrict(buf.Bytes(), &map[string]any{}); err != nil {
		t.Fatalf("not YAML: %v\n%s", err, buf.String())
	}
	again, _, err := schedulerscheme.Codecs.UniversalDecoder().Decode(buf.Bytes(), nil, nil)
	if err != nil {
		t.Fatalf("%v in\n%s", err, buf.String())
	}
	if diff := cmp.Diff(cfg, again); diff != "" {
		t.Error(diff)
	}
}

// must ends the test if there is an error.
var must = placementtest.Must
