// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/allocationorder"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
	"github.com/espalier-scheduler/espalier/pkg/plugins/faultynode"
	"github.com/espalier-scheduler/espalier/pkg/plugins/hostports"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodesampling"
	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preassignedfirst"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
	"github.com/espalier-scheduler/espalier/pkg/plugins/recordingbinder"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

func TestRegistry(t *testing.T) {
	got := slices.Sorted(maps.Keys(plugins.Registry()))
	if want := []string{allocationorder.Name, constraints.Name, domainlimits.Name, faultynode.Name, hostports.Name, nodelifetime.Name, nodeplugins.Name, nodesampling.Name, platform.Name, preassignedfirst.Name, preferences.Name, recordingbinder.Name, spreadtree.Name}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := frameworkplugins.NewInTreeRegistry().Merge(plugins.Registry()); err != nil {
		t.Errorf("a name is taken in-tree: %v", err)
	}
}

// configuration has our plugins beside the in-tree ones. DynamicResources is off: it wants a cluster's devices to be tracked. So are the
// in-tree default constraints: with them no pod is signed at all.
const configuration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Preferences}, {name: NodePlugins}, {name: Constraints}, {name: Platform}, {name: HostPorts}, {name: DomainLimits}, {name: NodeLifetime}, {name: FaultyNode, weight: 30}, {name: SpreadTree, weight: 10000}]
      disabled: [{name: DynamicResources}, {name: NodePorts}]
  pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: List}
  - name: NodeLifetime
    args: {leases: AnnotationsAndDeadlines}
`

// profile is the profile of configuration over a snapshot.
func profile(t *testing.T, snapshot *cache.Snapshot) (context.Context, framework.Framework) {
	t.Helper()
	return profileOf(t, configuration, snapshot)
}

// profileOf is the first profile of any configuration.
func profileOf(t testing.TB, configuration string, snapshot fwk.MutableSnapshotSharedLister) (context.Context, framework.Framework) {
	t.Helper()
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(configuration), nil, nil)
	must(t, err)
	first := &obj.(*schedulerapi.KubeSchedulerConfiguration).Profiles[0]
	return t.Context(), plugintest.Framework(t, first, plugins.Registry(), snapshot)
}

// A plugin that does not sign turns signatures off for its whole profile. Ours leave
// them to the pods that are alike, which are those that are not spread.
func TestTheProfileStillSigns(t *testing.T) {
	ctx, f := profile(t, cache.NewEmptySnapshot())
	daemonSet := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	pod := func(name string) *st.PodWrapper { return st.MakePod().Namespace("ns").Name(name).UID(name) }
	first := f.SignPod(ctx, pod("a").OwnerReference("ds", daemonSet).Obj())
	if first == nil {
		t.Fatal("a DaemonSet's pod is not signed")
	}
	if second := f.SignPod(ctx, pod("b").OwnerReference("ds", daemonSet).Obj()); !slices.Equal(first, second) {
		t.Errorf("two pods of a DaemonSet are signed %s and %s", first, second)
	}
	if s := f.SignPod(ctx, pod("c").Obj()); s != nil {
		t.Errorf("a pod that is spread is signed %s", s)
	}
}

// fitting leads a pod through PreFilter and Filter, and returns the nodes that it fits on.
func fitting(t placementtest.TB, f framework.Framework, state fwk.CycleState, pod *corev1.Pod) (fit []fwk.NodeInfo) {
	t.Helper()
	if _, status, _ := f.RunPreFilterPlugins(context.Background(), state, pod); !status.IsSuccess() {
		t.Fatalf("PreFilter of %s: %v", pod.Name, status)
	}
	all, err := f.SnapshotSharedLister().NodeInfos().List()
	must(t, err)
	for _, n := range all {
		if f.RunFilterPlugins(context.Background(), state, pod, n).IsSuccess() {
			fit = append(fit, n)
		}
	}
	return fit
}

// best are the nodes with the highest total, as far as the tree decides it: other
// scorers only break ties, and here have nothing to break them by.
func best(scores []fwk.NodePluginScores) (names []string) {
	highest := slices.MaxFunc(scores, func(a, b fwk.NodePluginScores) int { return cmp.Compare(a.TotalScore, b.TotalScore) }).TotalScore
	for _, s := range scores {
		if s.TotalScore == highest {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// must ends the test if there is an error.
var must = placementtest.Must

// failing is a cluster with an API server that fails.
type failing struct {
	*plugintest.Cluster
	url string
}

func (c failing) KubeConfig() *rest.Config { return &rest.Config{Host: c.url} }

// While policies cannot be read pods stay Pending, and not those of a DaemonSet, which no
// policy places: in the place of the default scheduler a new node would get no network.
func TestRegression_DaemonSetsWhilePoliciesCannotBeRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	cluster := failing{plugintest.NewCluster(), server.URL}
	levels := plugintest.New[fwk.Plugin](t, preferences.New, &config.PreferencesArgs{}, cluster)
	limits := plugintest.New[fwk.Plugin](t, domainlimits.New, &config.DomainLimitsArgs{}, cluster)
	web := st.MakePod().Namespace("ns").Name("web").UID("web").Obj()
	daemon := st.MakePod().Namespace("ns").Name("cni").UID("cni").OwnerReference("cni", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}).Obj()
	for _, plugin := range []fwk.Plugin{levels, limits} {
		t.Run(plugin.Name(), func(t *testing.T) {
			filter, signer := plugin.(fwk.PreFilterPlugin), plugin.(fwk.SignPlugin)
			_, status := filter.PreFilter(t.Context(), framework.NewCycleState(), web, nil)
			if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), "see whether the API server answers") {
				t.Errorf("of any other pod PreFilter says %v", status)
			}
			if _, status := filter.PreFilter(t.Context(), framework.NewCycleState(), daemon, nil); !status.IsSkip() {
				t.Errorf("PreFilter says %v", status)
			}
			if _, status := signer.SignPod(t.Context(), daemon); !status.IsSuccess() {
				t.Errorf("SignPod says %v", status)
			}
		})
	}
}

// The hints of all our plugins are narrow: nothing else than these events can help a pod
// that one of them has refused. And what is not understood must not leave it pending for ever.
func TestEventsToRegister(t *testing.T) {
	ctx, f := profile(t, cache.NewSnapshot(nil, nil))
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").HostPort(80).
		Annotation(clusterview.PlacementAnnotation, "spread=zone;nodesWithoutKey=Exclude").
		Annotation(clusterview.ConstraintsAnnotation, "node.labels.disk==ssd").
		Annotation(clusterview.PlatformsAnnotation, "linux/arm64").
		Annotation(clusterview.LeaseAnnotation, "72h").
		Annotation(clusterview.DomainLimitsAnnotation, "rack=1").Obj()
	registered := make(map[string]int)
	logger, _ := ktesting.NewTestContext(t)
	for _, pl := range f.EnqueueExtensions() {
		name := pl.Name()
		if plugins.Registry()[name] == nil {
			continue
		}
		events, err := pl.EventsToRegister(ctx)
		must(t, err)
		registered[name] = len(events)
		for _, e := range events {
			if e.QueueingHintFn == nil || e.Event.Resource == fwk.WildCard || e.Event.ActionType == fwk.All {
				t.Errorf("%s: %v is registered without a hint of its own", name, e.Event)
				continue
			}
			var before, after any = nil, "no object"
			if e.Event.ActionType&^fwk.Delete == 0 {
				before, after = after, before
			}
			if got, err := e.QueueingHintFn(logger, pod, before, after); got != fwk.Queue || err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v: got %v, %v", name, e.Event, got, err)
			}
		}
	}
	want := map[string]int{
		"Constraints": 2, "DomainLimits": 3, "FaultyNode": 0, "HostPorts": 2, "NodeLifetime": 2, "NodePlugins": 5, "Platform": 2, "Preferences": 2, "SpreadTree": 0,
	}
	if !maps.Equal(registered, want) {
		t.Errorf("the plugins register %v events, want %v", registered, want)
	}
}

// TestEveryRefusalIsCounted wants a counter directly before each refusal of a filter: a
// reason that somebody adds would otherwise be missing from what an operator sees.
func TestEveryRefusalIsCounted(t *testing.T) {
	files, err := filepath.Glob("*/filter.go")
	if err != nil || len(files) < 6 {
		t.Fatalf("filters are in %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		lines, refusals := strings.Split(string(text), "\n"), 0
		for i, line := range lines {
			if !strings.Contains(line, "NewStatus(fwk.Unschedulable") {
				continue
			}
			refusals++
			if !strings.HasSuffix(lines[i-1], ".Inc()") {
				t.Errorf("%s:%d: it refuses, and nothing counts it: have refusal.CounterOf make a counter", file, i+1)
			}
		}
		if refusals == 0 {
			t.Errorf("%s refuses nothing", file)
		}
	}
}
