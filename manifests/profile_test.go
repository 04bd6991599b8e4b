// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulervalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	configscheme "github.com/espalier-scheduler/espalier/apis/config/scheme"
	configv1 "github.com/espalier-scheduler/espalier/apis/config/v1"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
	"github.com/espalier-scheduler/espalier/pkg/plugins/faultynode"
	"github.com/espalier-scheduler/espalier/pkg/plugins/hostports"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// schedulerConfig decodes a configuration as the scheduler does and validates it, our arguments too.
func schedulerConfig(doc []byte) (*schedulerapi.KubeSchedulerConfiguration, error) {
	obj, gvk, err := configscheme.Codecs.UniversalDecoder().Decode(doc, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*schedulerapi.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("it is a %T and no KubeSchedulerConfiguration", obj)
	}
	cfg.APIVersion = gvk.GroupVersion().String()
	if err := schedulervalidation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return nil, err
	}
	for _, profile := range cfg.Profiles {
		for _, pc := range profile.PluginConfig {
			if err := validation.PluginArgs(nil, pc.Args).ToAggregate(); err != nil {
				return nil, err
			}
		}
	}
	return cfg, nil
}

// enabled builds the shipped profile with the plugins of the scheduler's binary and returns what is enabled where.
func enabled(t *testing.T) *schedulerapi.Plugins {
	t.Helper()
	cfg, err := schedulerConfig(manifests.SchedulerConfig)
	must(t, err)
	return plugintest.Framework(t, &cfg.Profiles[0], plugins.Registry(), cache.NewEmptySnapshot()).ListPlugins()
}

func has(set schedulerapi.PluginSet, name string) bool {
	return slices.ContainsFunc(set.Enabled, func(p schedulerapi.Plugin) bool { return p.Name == name })
}

func TestShippedProfileEnables(t *testing.T) {
	p := enabled(t)
	points := map[string]schedulerapi.PluginSet{"PreEnqueue": p.PreEnqueue, "PreFilter": p.PreFilter, "Filter": p.Filter, "PreScore": p.PreScore, "Score": p.Score, "Reserve": p.Reserve}
	for _, tc := range []struct {
		plugin string
		on     []string
		off    []string
	}{
		{spreadtree.Name, []string{"PreScore", "Score"}, nil},
		{faultynode.Name, []string{"PreFilter", "PreScore", "Score", "Reserve"}, []string{"Filter"}},
		{preferences.Name, []string{"PreFilter"}, nil},
		{hostports.Name, []string{"PreFilter", "Filter"}, nil},
		{names.NodePorts, nil, []string{"PreFilter", "Filter"}},
		{domainlimits.Name, []string{"PreFilter", "Filter"}, nil},
		{nodeplugins.Name, []string{"PreFilter", "Filter"}, nil},
		{constraints.Name, []string{"PreFilter", "Filter"}, nil},
		{platform.Name, []string{"PreFilter", "Filter"}, nil},
		{names.PodTopologySpread, []string{"PreFilter", "Filter"}, []string{"PreScore", "Score"}},
		{names.NodeUnschedulable, []string{"Filter"}, nil},
		{names.TaintToleration, []string{"Filter", "Score"}, nil},
		{names.NodeResourcesFit, []string{"PreFilter", "Filter", "Score"}, nil},
		{names.NodeAffinity, []string{"PreFilter", "Filter", "Score"}, nil},
		{names.InterPodAffinity, []string{"PreFilter", "Filter", "Score"}, nil},
		{names.VolumeBinding, []string{"PreFilter", "Filter", "Reserve"}, nil},
	} {
		for _, point := range tc.on {
			if !has(points[point], tc.plugin) {
				t.Errorf("%s is not enabled at %s", tc.plugin, point)
			}
		}
		for _, point := range tc.off {
			if has(points[point], tc.plugin) {
				t.Errorf("%s is enabled at %s", tc.plugin, point)
			}
		}
	}
}

// TestFiltersKeepTheOrderOfSwarmKit holds what the profile's comment says: a node counts for the first filter that refuses it, so the order is part of
// every message. The list of docs/troubleshooting.md is in this order: a node that is fixed may be refused again, by what comes after.
func TestFiltersKeepTheOrderOfSwarmKit(t *testing.T) {
	const (
		ready   = "Is the node ready and not cordoned, and does the pod tolerate its taints?"
		allowed = "Does the pod allow it, by node selector, node affinity and `espalier.dev/constraints`?"
		volumes = "Can it use the pod's volumes?"
	)
	order := []struct{ filter, question string }{
		{names.NodeName, ready}, {names.NodeUnschedulable, ready}, {names.TaintToleration, ready},
		{names.NodeResourcesFit, "Does it have the capacity that the pod requests?"},
		{nodeplugins.Name, "Does it have the CSI drivers and the runtime handler that the pod needs?"},
		{names.NodeAffinity, allowed}, {constraints.Name, allowed},
		{preferences.Name, "Does it have the labels of levels with `nodesWithoutKey=Exclude`?"},
		{platform.Name, "Does it have the platform that the pod needs?"},
		{hostports.Name, "Are the pod's host ports free on it?"},
		{domainlimits.Name, "Do the limits of its domains allow one more pod?"},
		{names.VolumeRestrictions, volumes}, {names.NodeVolumeLimits, volumes}, {names.VolumeBinding, volumes}, {names.VolumeZone, volumes},
		// Kubernetes' own, and what feature gates add.
		{names.PodTopologySpread, "Do the pod's `DoNotSchedule` constraints allow it?"},
		{names.InterPodAffinity, "Do the affinity and anti-affinity of pods allow it?"},
		{names.DynamicResources, "Does it have the devices that the pod claims?"},
		{names.NodeDeclaredFeatures, "Does it have the features that the pod requires?"},
	}
	var got, want, questions []string
	for _, p := range enabled(t).Filter.Enabled {
		got = append(got, p.Name)
	}
	for _, is := range order {
		want, questions = append(want, is.filter), append(questions, is.question)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the filters are in the order\n%q, want\n%q", got, want)
	}
	var list strings.Builder
	for i, question := range slices.Compact(questions) {
		fmt.Fprintf(&list, "%d. %s\n", i+1, question)
	}
	page, err := os.ReadFile("../docs/troubleshooting.md")
	must(t, err)
	if !strings.Contains(string(page), "\n\n"+list.String()+"\n") {
		t.Errorf("docs/troubleshooting.md does not have the list\n%s", list.String())
	}
}

// TestOneClassOutweighsAllOtherScorers holds what the profile's comment says: a node in a worse class of the tree never wins, whatever the
// others think of it, and of nodes in one class a faulty one never does, whatever the in-tree scorers think.
func TestOneClassOutweighsAllOtherScorers(t *testing.T) {
	const best, faultyLoses = 100, 50
	var tree, faults, inTree int32
	for _, s := range enabled(t).Score.Enabled {
		switch s.Name {
		case spreadtree.Name:
			tree = s.Weight
		case faultynode.Name:
			faults = s.Weight
		default:
			inTree += s.Weight * best
		}
	}
	if tree != 10000 || inTree == 0 || faults*best+inTree >= tree {
		t.Errorf("a class weighs %d, faults up to %d, and the in-tree scorers together up to %d", tree, faults*best, inTree)
	}
	if faults*faultyLoses <= inTree {
		t.Errorf("a faulty node loses by %d, and the in-tree scorers make up for %d", faults*faultyLoses, inTree)
	}
}

func TestShippedConfiguration(t *testing.T) {
	cfg, err := schedulerConfig(manifests.SchedulerConfig)
	must(t, err)
	if len(cfg.Profiles) != 1 || cfg.Profiles[0].SchedulerName != "espalier-scheduler" {
		t.Fatalf("want one profile with the name espalier-scheduler, got %+v", cfg.Profiles)
	}
	if p := cfg.PercentageOfNodesToScore; p == nil || *p != 100 {
		t.Errorf("percentageOfNodesToScore is %v, want 100", p)
	}
	if c := cfg.ClientConnection; c.QPS != 500 || c.Burst != 1000 {
		t.Errorf("the client's limits are %v and %v, want 500 and 1000", c.QPS, c.Burst)
	}
	if l := cfg.LeaderElection; !l.LeaderElect || l.ResourceName != "espalier-scheduler" || l.ResourceNamespace != "kube-system" || l.ResourceLock != "leases" {
		t.Errorf("leader election is %+v", l)
	}
	// What is written out for readers must be what the arguments default to, but for what SpreadTree does in the place of PodTopologySpread.
	for _, pc := range cfg.Profiles[0].PluginConfig {
		if args, ok := pc.Args.(*schedulerapi.PodTopologySpreadArgs); ok {
			if args.DefaultingType != schedulerapi.ListDefaulting || len(args.DefaultConstraints) != 0 {
				t.Errorf("in-tree default spreading is on: %+v", args)
			}
			continue
		}
		kinds, _, err := configscheme.Scheme.ObjectKinds(pc.Args)
		must(t, err)
		want, err := runtime.Decode(configscheme.Codecs.UniversalDecoder(), fmt.Appendf(nil, `{"apiVersion": %q, "kind": %q}`, configv1.SchemeGroupVersion, kinds[0].Kind))
		must(t, err)
		if !equality.Semantic.DeepEqual(pc.Args, want) {
			t.Errorf("the arguments of %s are %+v, and the defaults %+v", pc.Name, pc.Args, want)
		}
	}
}
