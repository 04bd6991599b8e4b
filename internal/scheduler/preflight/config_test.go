// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/commandtest"
	"github.com/espalier-scheduler/espalier/internal/scheduler/replicas"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must ends the test if there is an error.
var must = placementtest.Must

// flags are those of kube-scheduler, with our help.
func flags() *pflag.FlagSet {
	all := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range options.NewOptions().Flags.FlagSets {
		all.AddFlagSet(set)
	}
	replicas.AddFlag(all)
	Describe(all)
	return all
}

// parsed are the flags as a command line sets them.
func parsed(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := flags()
	must(t, flags.Parse(args))
	return flags
}

// configureGiven runs configure over what is given.
func configureGiven(flags *pflag.FlagSet) (connection, []string, error) {
	path, data, err := load(flags, manifests.SchedulerConfig)
	if err != nil {
		return connection{}, nil, err
	}
	return configure(flags, path, data)
}

// configured runs configure and reads what it hands over, as kube-scheduler does.
func configured(t *testing.T, args ...string) (*schedulerapi.KubeSchedulerConfiguration, connection) {
	t.Helper()
	flags := parsed(t, args...)
	c, _, err := configureGiven(flags)
	must(t, err)
	path, err := flags.GetString("config")
	must(t, err)
	cfg, err := options.LoadConfigFromFile(klog.Background(), path)
	must(t, err)
	return cfg, c
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

const mine = head + `
clientConnection: {qps: 11, burst: 12, kubeconfig: /from/the/file}
leaderElection: {resourceName: mine}
percentageOfNodesToScore: 50
enableProfiling: false
profiles:
- schedulerName: mine
  plugins: {multiPoint: {enabled: [{name: Preferences}, {name: SpreadTree, weight: 7}]}}
  pluginConfig:
  - name: SpreadTree
    args: {countRevisions: All}
`

func TestDescribe(t *testing.T) {
	usages := "\n" + flags().FlagUsages()
	for _, o := range overlays {
		i := strings.Index(usages, "\n      --"+o.flag+" ")
		if i < 0 {
			t.Errorf("help does not know --%s", o.flag)
			continue
		}
		line, _, _ := strings.Cut(usages[i+1:], "\n")
		if !strings.Contains(line, "Overrides "+strings.Join(o.path, ".")) || strings.Contains(line, "DEPRECATED") || strings.Contains(line, "(default") {
			t.Errorf("help says %s", line)
		}
	}
}

func TestConfigureRunsTheShippedProfile(t *testing.T) {
	cfg, c := configured(t)
	if len(cfg.Profiles) != 1 || cfg.Profiles[0].SchedulerName != "espalier-scheduler" || cfg.LeaderElection.ResourceName != "espalier-scheduler" {
		t.Errorf("it runs %+v", cfg)
	}
	if cfg.ClientConnection.QPS != 500 || c != (connection{}) {
		t.Errorf("it connects by %+v and %+v", cfg.ClientConnection, c)
	}
}

// The flags win, over what is shipped and over a file; nothing else is changed.
func TestConfigureLaysFlagsOver(t *testing.T) {
	flags := []string{"--kubeconfig=/given", "--kube-api-qps=7.5", "--kube-api-burst=9", "--kube-api-content-type=application/json", "--profiling=false", "--contention-profiling=false"}
	want := func(t *testing.T, cfg *schedulerapi.KubeSchedulerConfiguration, c connection) {
		t.Helper()
		cc := cfg.ClientConnection
		if cc.Kubeconfig != "/given" || cc.QPS != 7.5 || cc.Burst != 9 || cc.ContentType != "application/json" || cfg.EnableProfiling || cfg.EnableContentionProfiling {
			t.Errorf("the flags are lost: %+v", cfg)
		}
		if c.kubeconfig != "/given" {
			t.Errorf("it connects by %+v", c)
		}
	}
	t.Run("shipped", func(t *testing.T) {
		cfg, c := configured(t, flags...)
		want(t, cfg, c)
		if cfg.Profiles[0].SchedulerName != "espalier-scheduler" || *cfg.PercentageOfNodesToScore != 100 || !cfg.LeaderElection.LeaderElect {
			t.Errorf("more than the flags was changed: %+v", cfg)
		}
	})
	t.Run("file", func(t *testing.T) {
		cfg, c := configured(t, append(flags, "--config="+written(t, mine))...)
		want(t, cfg, c)
		if cfg.Profiles[0].SchedulerName != "mine" || cfg.LeaderElection.ResourceName != "mine" || *cfg.PercentageOfNodesToScore != 50 {
			t.Errorf("more than the flags was changed: %+v", cfg)
		}
		for _, p := range cfg.Profiles[0].Plugins.MultiPoint.Enabled {
			if p.Name == spreadtree.Name && p.Weight != 7 {
				t.Errorf("the weight was changed to %d", p.Weight)
			}
		}
	})
}

// A configuration may come through a pipe, which can be read once.
func TestConfigureReadsAPipe(t *testing.T) {
	path, err := pipe([]byte(mine))
	must(t, err)
	cfg, c := configured(t, "--config="+path, "--master=https://localhost:1")
	if c != (connection{master: "https://localhost:1", kubeconfig: "/from/the/file"}) || cfg.Profiles[0].SchedulerName != "mine" {
		t.Errorf("it connects by %+v and runs %+v", c, cfg)
	}
}

// The default scheduler's Lease is never taken by not naming one.
func TestConfigureNamesALease(t *testing.T) {
	for text, want := range map[string]string{
		head:                          "espalier-scheduler",
		head + "leaderElection: null": "espalier-scheduler",
		head + "leaderElection: {leaseDuration: 20s}":           "espalier-scheduler",
		head + "leaderElection: {resourceName: kube-scheduler}": "kube-scheduler",
	} {
		if cfg, _ := configured(t, "--config="+written(t, text)); cfg.LeaderElection.ResourceName != want {
			t.Errorf("with\n%s\nit takes the Lease %s, want %s", text, cfg.LeaderElection.ResourceName, want)
		}
	}
}

// Warned is about what runs, but not as evenly as it could.
func TestConfigureWarns(t *testing.T) {
	profile := func(plugins string) string {
		return head + "profiles: [{schedulerName: x, plugins: {" + plugins + "}}]\n"
	}
	for name, tc := range map[string]struct {
		text string
		want []string // a warning holds each
	}{
		"shipped":         {string(manifests.SchedulerConfig), nil},
		"without ours":    {head, nil},
		"default weight":  {"percentageOfNodesToScore: 100\n" + profile("multiPoint: {enabled: [{name: Preferences}, {name: SpreadTree}]}"), []string{"SpreadTree has weight 1, and the other scorers"}},
		"no Preferences":  {"percentageOfNodesToScore: 100\n" + profile("multiPoint: {enabled: [{name: SpreadTree, weight: 10000}]}"), []string{"Preferences is not enabled"}},
		"a misspelt name": {string(manifests.SchedulerConfig) + "  - name: SpreadTre\n    args: {countRevisions: All}\n", []string{`"SpreadTre", which the profile does not enable, and does nothing; enable it, or name one of Constraints,`}},
		"no such plugin":  {head + "profiles: [{schedulerName: x, pluginConfig: [{name: SpreadTree, args: {}}]}]\n", []string{`pluginConfig[0] is of "SpreadTree", which the profile does not enable`}},
		"a sample":        {profile("multiPoint: {enabled: [{name: Preferences}, {name: SpreadTree, weight: 10000}]}"), []string{"percentageOfNodesToScore is 0"}},
		"a profile's own": {"percentageOfNodesToScore: 100\n" + strings.Replace(profile("multiPoint: {enabled: [{name: Preferences}, {name: SpreadTree, weight: 10000}]}"), "schedulerName: x", "schedulerName: x, percentageOfNodesToScore: 40", 1), []string{"percentageOfNodesToScore is 40"}},
	} {
		_, got, err := configureGiven(parsed(t, "--config="+written(t, tc.text)))
		if err != nil || len(got) != len(tc.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tc.want)
			continue
		}
		for i := range tc.want {
			if !strings.Contains(got[i], tc.want[i]) {
				t.Errorf("%s: %q does not say %q", name, got[i], tc.want[i])
			}
		}
	}
}

// What is wrong is said of the file and the field, in one line.
func TestConfigureRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string // the error holds them all
	}{
		"no YAML":                     {"a: b: c", nil},
		"SpreadTree at score alone":   {head + "profiles: [{plugins: {score: {enabled: [{name: SpreadTree, weight: 10000}]}}}]", []string{"profiles[0].plugins.preScore.enabled: Required value"}},
		"Preferences at filter alone": {head + "profiles: [{plugins: {filter: {enabled: [{name: Preferences}]}}}]", []string{"profiles[0].plugins.preFilter.enabled: Required value"}},
		"SpreadTree but for preScore": {head + "profiles: [{plugins: {multiPoint: {enabled: [{name: SpreadTree}]}, preScore: {disabled: [{name: '*'}]}}}]", []string{"profiles[0].plugins.preScore.enabled: Required value"}},
		"nothing":                     {"", []string{"Kind"}},
		"another kind":                {"apiVersion: v1\nkind: ConfigMap\n", []string{"ConfigMap"}},
		"an unknown field":            {head + "percentageOfNodes: 5\n", []string{`unknown field "percentageOfNodes"`}},
		"a bad value":                 {head + "percentageOfNodesToScore: 101\n", []string{"percentageOfNodesToScore", "101"}},
		"an unknown field of ours":    {strings.Replace(mine, "countRevisions: All", "countRevision: All", 1), []string{`unknown field`, "countRevision"}},
		"a bad value of ours":         {strings.Replace(mine, "countRevisions: All", "countRevisions: Some", 1), []string{"profiles[0].pluginConfig[0].args.countRevisions", `"Some"`, `"All"`}},
		"a bad default limit":         {mine + "  - name: DomainLimits\n    args: {defaultLimits: [{topologyKey: rack, maxPods: 0}]}\n", []string{"profiles[0].pluginConfig[1].args.defaultLimits[0].maxPods", "from 1 to 1000000"}},
		"a bad default level":         {mine + "  - name: Preferences\n    args: {defaultLevels: [{topologyKey: zone}, {topologyKey: node.id}]}\n", []string{"profiles[0].pluginConfig[1].args.defaultLevels[1].topologyKey", `"node.id"`}},
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, tc.text)
			_, _, err := configureGiven(parsed(t, "--config="+path, "--kubeconfig=/given"))
			commandtest.WantMistake(t, err, append(tc.want, "--config", path)...)
		})
	}
}

// A pipe takes 64 KiB at once; whoever reads it gets all of a longer configuration.
func TestConfigureHandsOverALongConfiguration(t *testing.T) {
	var text strings.Builder
	text.WriteString(mine + "  - name: Preferences\n    args:\n      defaultLevels:\n")
	for i := range 16 {
		fmt.Fprintf(&text, "      - {topologyKey: level-%d, shares: [", i)
		for j := range 254 {
			fmt.Fprintf(&text, "{value: %s-%d, share: 7}, ", strings.Repeat("x", 50), j)
		}
		text.WriteString("]}\n")
	}
	if text.Len() < 3<<16 {
		t.Fatalf("the configuration has %d bytes", text.Len())
	}
	cfg, _ := configured(t, "--config="+written(t, text.String()), "--kube-api-qps=3")
	args, ok := cfg.Profiles[0].PluginConfig[1].Args.(*config.PreferencesArgs)
	if cfg.ClientConnection.QPS != 3 || !ok || len(args.DefaultLevels) != 16 || len(args.DefaultLevels[15].Shares) != 254 {
		t.Errorf("it was cut to %+v", cfg)
	}
}

func TestSetRefusesWhatIsNoStruct(t *testing.T) {
	err := set(map[string]any{"clientConnection": "near"}, []string{"clientConnection", "qps"}, 3)
	if err == nil || !strings.Contains(err.Error(), "clientConnection") {
		t.Errorf("got %v", err)
	}
}

// --active-active keeps the pods of other replicas out of every profile, whatever else these let in.
func TestActiveActiveIsOfAllProfiles(t *testing.T) {
	const plugin = replicas.Name
	gates := func(p schedulerapi.KubeSchedulerProfile) (names []string) {
		for _, is := range p.Plugins.PreEnqueue.Enabled {
			names = append(names, is.Name)
		}
		return names
	}
	for name, args := range map[string][]string{
		"shipped":      nil,
		"a file":       {"--config=" + written(t, mine)},
		"no profile":   {"--config=" + written(t, head)},
		"two profiles": {"--config=" + written(t, head+"profiles: [{schedulerName: a, plugins: {preEnqueue: {disabled: [{name: '*'}], enabled: [{name: SchedulingGates}]}}}, {schedulerName: b}]")},
	} {
		t.Run(name, func(t *testing.T) {
			with, _ := configured(t, append(args, "--active-active")...)
			without, _ := configured(t, args...)
			for i := range with.Profiles {
				if got, want := gates(with.Profiles[i]), append(gates(without.Profiles[i]), plugin); !slices.Equal(got, want) {
					t.Errorf("profile %d lets in by %v, want %v", i, got, want)
				}
			}
			if len(with.Profiles) != len(without.Profiles) || len(with.Profiles) == 0 {
				t.Errorf("there are %d profiles, and %d without", len(with.Profiles), len(without.Profiles))
			}
		})
	}
}

func TestActiveActiveNeedsAConfigurationInForm(t *testing.T) {
	for profiles, want := range map[string]string{"{a: b}": "not a list", "[7]": "profiles[0]", "[{plugins: 7}]": "plugins"} {
		var config map[string]any
		must(t, yaml.Unmarshal([]byte("profiles: "+profiles), &config))
		if err := overlay(parsed(t, "--active-active"), config); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--active-active") {
			t.Errorf("%s: %v", profiles, err)
		}
	}
}
