// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
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

// configuration has our plugins beside the in-tree ones. DynamicResources is off: it
// wants a cluster's devices to be tracked. So are the in-tree default constraints: with
// them no pod is signed at all.
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
	registry := frameworkplugins.NewInTreeRegistry()
	must(t, registry.Merge(plugins.Registry()))
	metrics.Register()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	f, err := frameworkruntime.NewFramework(t.Context(), registry, &obj.(*schedulerapi.KubeSchedulerConfiguration).Profiles[0],
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithMutableSnapshotLister(snapshot),
		frameworkruntime.WithPodNominator(internalqueue.NewSchedulingQueue(nil, factory)),
	)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return t.Context(), f
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

// TestACycleOfTheProfile leads pods through the extension points as the scheduler
// does, with the plugins of the profile and the order that it gives them.
func TestACycleOfTheProfile(t *testing.T) {
	nodes := snapshotOf("a1 zone=a", "a2 zone=a", "b1 zone=b", "c1")
	ctx, f := profile(t, nodes)
	for _, tc := range []struct {
		name      string
		placement string
		filtered  []string // the nodes that pass
		best      []string
		refused   string // at PreFilter, by this plugin
	}{
		{"spread", "spread=zone;weight.a=2", []string{"a1", "a2", "b1", "c1"}, []string{"a1", "a2"}, ""},
		{"nothing asked for", "", []string{"a1", "a2", "b1", "c1"}, []string{"a1", "a2", "b1", "c1"}, ""},
		{"nodes left out", "spread=zone;nodesWithoutKey=Exclude", []string{"a1", "a2", "b1"}, []string{"a1", "a2", "b1"}, ""},
		{"malformed", "sprd=zone", nil, nil, preferences.Name},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := st.MakePod().Namespace("ns").Name("p").UID("p")
			if tc.placement != "" {
				pod.Annotation(clusterview.PlacementAnnotation, tc.placement)
			}
			state := framework.NewCycleState()
			if tc.refused != "" {
				_, status, _ := f.RunPreFilterPlugins(ctx, state, pod.Obj())
				if status.Code() != fwk.UnschedulableAndUnresolvable || status.Plugin() != tc.refused {
					t.Errorf("PreFilter: %v, by %s", status, status.Plugin())
				}
				return
			}
			fit, _ := fitting(t, f, state, pod.Obj())
			if got := names(fit); !slices.Equal(got, tc.filtered) {
				t.Errorf("%q pass, want %q", got, tc.filtered)
			}
			if status := f.RunPreScorePlugins(ctx, state, pod.Obj(), fit); !status.IsSuccess() {
				t.Fatalf("PreScore: %v", status)
			}
			scores, status := f.RunScorePlugins(ctx, state, pod.Obj(), fit)
			if !status.IsSuccess() {
				t.Fatalf("Score: %v", status)
			}
			if got := best(scores); !slices.Equal(got, tc.best) {
				t.Errorf("%q are best, want %q of %v", got, tc.best, scores)
			}
		})
	}
}

// snapshotOf is of nodes without pods, in the notation "a1 zone=a".
func snapshotOf(texts ...string) *cache.Snapshot {
	var nodes []*corev1.Node
	for _, text := range texts {
		name, label, _ := strings.Cut(text, " ")
		n := st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10"})
		if key, value, ok := strings.Cut(label, "="); ok {
			n.Label(key, value)
		}
		nodes = append(nodes, n.Obj())
	}
	return cache.NewSnapshot(nil, nodes)
}

// fitting leads a pod through PreFilter and Filter, and returns the nodes that it fits on, or what it is told instead.
func fitting(t placementtest.TB, f framework.Framework, state fwk.CycleState, pod *corev1.Pod) (fit []fwk.NodeInfo, refusal string) {
	t.Helper()
	if _, status, _ := f.RunPreFilterPlugins(context.Background(), state, pod); !status.IsSuccess() {
		t.Fatalf("PreFilter of %s: %v", pod.Name, status)
	}
	all, err := f.SnapshotSharedLister().NodeInfos().List()
	must(t, err)
	statuses := framework.NewDefaultNodeToStatus()
	for _, n := range all {
		if status := f.RunFilterPlugins(context.Background(), state, pod, n); status.IsSuccess() {
			fit = append(fit, n)
		} else {
			statuses.Set(n.Node().Name, status)
		}
	}
	e := framework.FitError{Pod: pod, NumAllNodes: len(all), Diagnosis: framework.Diagnosis{NodeToStatus: statuses}}
	return fit, e.Error()
}

func names(nodes []fwk.NodeInfo) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Node().Name)
	}
	slices.Sort(names)
	return names
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

// A pod that fits nowhere says why for each node once: SwarmKit's scenario of one
// node that is too small beside two that are not ready. Apples are an extended resource.
func TestVector_2_6_R1(t *testing.T) {
	node := func(name, memory, apples string) *st.NodeWrapper {
		return st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{
			corev1.ResourcePods: "10", corev1.ResourceMemory: memory, "example.com/apple": apples,
		})
	}
	// The node lifecycle controller gives a node that is not ready this taint.
	unready := []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	nodes := []*corev1.Node{
		node("small", "1G", "1").Obj(),
		node("unready-1", "2G", "2").Taints(unready).Obj(),
		node("unready-2", "2G", "2").Taints(unready).Obj(),
	}
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").
		Req(map[corev1.ResourceName]string{corev1.ResourceMemory: "2G", "example.com/apple": "2"}).Obj()

	_, f := profile(t, cache.NewSnapshot(nil, nodes))
	fit, message := fitting(t, f, framework.NewCycleState(), pod)
	const want = "0/3 nodes are available: 1 Insufficient example.com/apple, 1 Insufficient memory, 2 node(s) had untolerated taint(s)."
	if len(fit) != 0 || message != want {
		t.Errorf("%q fit, and the message is\n%s\nwant\n%s", names(fit), message, want)
	}
	_, f = profile(t, cache.NewSnapshot(nil, append(nodes, node("large", "8G", "4").Obj())))
	fit, _ = fitting(t, f, framework.NewCycleState(), pod)
	if !slices.Equal(names(fit), []string{"large"}) {
		t.Errorf("%q fit beside a node that is large enough", names(fit))
	}
}

// must ends the test if there is an error.
func must(t placementtest.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
