// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with, and fails if anything that a test has started runs on.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "500"})
	goleak.VerifyTestMain(m)
}

const (
	stockProfile = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
- plugins: {multiPoint: {disabled: [{name: DynamicResources}]}}
`
	zoneKey = "topology.kubernetes.io/zone"
)

// ourProfile scores as the shipped one does: soft constraints are levels there, and are not scored as well.
var ourProfile = strings.Replace(configuration, "  pluginConfig:", `    preScore: {disabled: [{name: PodTopologySpread}]}
    score: {disabled: [{name: PodTopologySpread}]}
  pluginConfig:`, 1)

// scenario is a cluster and the pods that come to it, in turn.
type scenario struct {
	nodes []*corev1.Node
	// there are pods that run already; pods ask for a node.
	there, pods []*corev1.Pod
	// zones says that the pods are to be spread over zones first; roomy, that each zone has room for all pods on nodes that nobody taints.
	zones, roomy bool
	// service selects the pods, where nothing but that says that they belong together; nil for none.
	service *corev1.Service
}

func (s *scenario) String() string {
	var b strings.Builder
	for _, n := range s.nodes {
		fmt.Fprintf(&b, "node %s zone=%s cpu=%s disk=%s taints=%d\n", n.Name, n.Labels[zoneKey], n.Status.Allocatable.Cpu(), n.Labels["disk"], len(n.Spec.Taints))
	}
	for _, p := range slices.Concat(s.there, s.pods) {
		fmt.Fprintf(&b, "pod %s on %q of %s: %v\n", p.Name, p.Spec.NodeName, p.Labels["svc"], p.Spec.TopologySpreadConstraints)
	}
	return b.String()
}

// draw draws a cluster whose zones are of unequal size and nodes of three, some of them softly tainted or without a zone; and pods
// of a few owners under one selector, which ask for the zone and the host in either order, and may prefer some nodes; or pods
// without owners behind a Service, which ask for nothing.
func draw(t *rapid.T, serial int) *scenario {
	s := &scenario{roomy: rapid.Bool().Draw(t, "roomy")}
	namespace := fmt.Sprint("ns", serial)
	cpus := []string{"4", "8", "64"}
	if s.roomy {
		cpus = []string{"16", "32", "64"}
	}
	softTaint := corev1.Taint{Key: "leaving", Effect: corev1.TaintEffectPreferNoSchedule}
	add := func(zone string, soft bool) {
		name := fmt.Sprint("n", len(s.nodes))
		n := st.MakeNode().Name(name).Label(corev1.LabelHostname, name).Label("disk", rapid.SampledFrom([]string{"ssd", "hdd"}).Draw(t, "disk")).
			Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: rapid.SampledFrom(cpus).Draw(t, "cpu"), corev1.ResourceMemory: "64Gi", corev1.ResourcePods: "110"})
		if zone != "" {
			n.Label(zoneKey, zone)
		}
		if soft {
			n.Taints([]corev1.Taint{softTaint})
		}
		s.nodes = append(s.nodes, n.Obj())
	}
	for z := range rapid.IntRange(1, 4).Draw(t, "zones") {
		zone := fmt.Sprint("zone-", z)
		add(zone, false)
		for range rapid.IntRange(0, 3).Draw(t, "more nodes") {
			add(zone, rapid.Bool().Draw(t, "soft"))
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "without a zone") == 0 {
		add("", false)
	}
	selector := st.MakeLabelSelector().Label("svc", "x").Obj()
	keys := rapid.SampledFrom([][]string{{zoneKey}, {zoneKey, corev1.LabelHostname}, {corev1.LabelHostname, zoneKey}, {corev1.LabelHostname}}).Draw(t, "keys")
	if rapid.IntRange(0, 3).Draw(t, "behind a Service") == 0 {
		s.service = &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"svc": "x"}}}
		s.service.Namespace, s.service.Name = namespace, "x"
		keys = nil // the defaults of both are zone and host
	}
	s.zones = s.service != nil || slices.Contains(keys, zoneKey)
	prefers := rapid.Bool().Draw(t, "prefers")
	milliCPU := rapid.SampledFrom([]int64{100, 500, 900}).Draw(t, "requests")
	owners := rapid.IntRange(1, 3).Draw(t, "owners")
	pod := func(name string, owner int) *corev1.Pod {
		p := st.MakePod().Namespace(namespace).Name(name).UID(namespace+name).Label("svc", "x").Label("pod-template-hash", fmt.Sprint(owner))
		for _, key := range keys {
			p.SpreadConstraint(1, key, corev1.ScheduleAnyway, selector, nil, nil, nil, nil)
		}
		var of []string
		if s.service == nil {
			of = []string{fmt.Sprintf("apps/v1 StatefulSet s%d %s-%d", owner, namespace, owner)}
		}
		made := plugintest.Pod(p, of...)
		made.Namespace = namespace
		if prefers {
			ssd := corev1.NodeSelectorRequirement{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}
			made.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 10, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{ssd}}},
			}}}
		}
		made.Spec.Containers = []corev1.Container{{Name: "c", Image: "image", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}}}}
		return made
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "there") {
		p := pod(fmt.Sprint("there-", i), i%owners)
		p.Spec.NodeName = rapid.SampledFrom(s.nodes).Draw(t, "node").Name
		s.there = append(s.there, p)
	}
	for i := range rapid.IntRange(1, 14).Draw(t, "pods") {
		s.pods = append(s.pods, pod(fmt.Sprint("p", i), i%owners))
	}
	return s
}

// outcome is where the pods of a scenario have ended.
type outcome struct {
	// placed are the pods with a node, soft those on nodes with a soft taint, and zoneless on nodes without a zone.
	placed, soft, zoneless int
	// unevenness is the sum of the squares of the pods in each zone: the lower, the more even.
	unevenness int
	nodes      []string
}

// run has a profile place the pods of a scenario.
func (h *house) run(t placementtest.TB, s *scenario) (o outcome) {
	h.TB, h.cache = t, cache.New(h.ctx, nil, false, false)
	zones, soft := make(map[string]string), make(map[string]bool)
	for _, n := range s.nodes {
		h.cache.AddNode(klog.Background(), n)
		zones[n.Name], soft[n.Name] = n.Labels[zoneKey], len(n.Spec.Taints) > 0
	}
	if s.service != nil {
		must(t, h.f.SharedInformerFactory().Core().V1().Services().Informer().GetIndexer().Add(s.service))
	}
	inZone := make(map[string]int)
	for _, p := range s.there {
		must(t, h.cache.AddPod(klog.Background(), p))
		inZone[zones[p.Spec.NodeName]]++
	}
	for _, p := range s.pods {
		node := h.place(p)
		o.nodes = append(o.nodes, node)
		if node == "" {
			continue
		}
		o.placed++
		inZone[zones[node]]++
		if soft[node] {
			o.soft++
		}
	}
	o.zoneless = inZone[""]
	delete(inZone, "")
	for _, pods := range inZone {
		o.unevenness += pods * pods
	}
	return o
}

// Beside the stock scheduler's default profile, on random clusters: as many pods are placed; none more are on nodes with a soft taint while
// there is room elsewhere; and zones are never less even, where they are asked for. Every answer is of the real plugins.
func TestPropertyBesideStock(t *testing.T) {
	houses := make(map[string]*house)
	for name, configuration := range map[string]string{"stock": stockProfile, "ours": ourProfile} {
		h := &house{TB: t, ctx: t.Context(), snapshot: cache.NewEmptySnapshot()}
		_, h.f = profileOf(t, configuration, h.snapshot)
		houses[name] = h
	}
	serial := 0
	var ahead, equal, behindService int
	rapid.Check(t, func(t *rapid.T) {
		serial++
		s := draw(t, serial)
		stock, ours := houses["stock"].run(t, s), houses["ours"].run(t, s)
		if ours.placed != stock.placed {
			t.Fatalf("%d pods are placed, and %d by the stock scheduler\n%v", ours.placed, stock.placed, s)
		}
		if !s.roomy {
			return
		}
		if ours.soft > stock.soft {
			t.Fatalf("%d pods are on nodes with a soft taint, and %d of the stock scheduler's\n%v\nours %v\nstock %v", ours.soft, stock.soft, s, ours.nodes, stock.nodes)
		}
		if s.zones && ours.zoneless > stock.zoneless {
			t.Fatalf("%d pods are on nodes without a zone, and %d of the stock scheduler's\n%v\nours %v\nstock %v", ours.zoneless, stock.zoneless, s, ours.nodes, stock.nodes)
		}
		if !s.zones || stock.zoneless > ours.zoneless {
			return // the stock scheduler has more places than the zones
		}
		if ours.unevenness > stock.unevenness {
			t.Fatalf("zones are less even than the stock scheduler's: %d for %d\n%v\nours %v\nstock %v", ours.unevenness, stock.unevenness, s, ours.nodes, stock.nodes)
		}
		if ours.unevenness < stock.unevenness {
			ahead++
		} else {
			equal++
		}
		if s.service != nil && s.zones {
			behindService++
		}
	})
	t.Logf("zones are more even than the stock scheduler's in %d clusters, and as even in %d; in %d of them pods are behind a Service", ahead, equal, behindService)
	if ahead == 0 {
		t.Error("they are never more even: the clusters do not tell the two apart")
	}
}

// A pod that says nothing itself keeps away from pods that prefer to be far from it, as with the stock scheduler, where the spread
// leaves several nodes to choose from.
func TestPreferencesOfPodsThatRun(t *testing.T) {
	for name, configuration := range map[string]string{"stock": stockProfile, "ours": ourProfile} {
		h := &house{TB: t, ctx: t.Context(), snapshot: cache.NewEmptySnapshot()}
		_, h.f = profileOf(t, configuration, h.snapshot)
		s := &scenario{}
		for i := range 3 {
			node := fmt.Sprint("n", i)
			s.nodes = append(s.nodes, st.MakeNode().Name(node).Label(corev1.LabelHostname, node).Label(zoneKey, "z").
				Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "8", corev1.ResourceMemory: "8Gi", corev1.ResourcePods: "110"}).Obj())
		}
		s.there = []*corev1.Pod{st.MakePod().Namespace("ns").Name("calm").UID("calm").Node("n0").PodAntiAffinityExists("noise", corev1.LabelHostname, st.PodAntiAffinityWithPreferredReq).Obj()}
		for i := range 4 {
			loud := plugintest.Pod(st.MakePod().Namespace("ns").Name(fmt.Sprint("loud", i)).UID(fmt.Sprint("loud", i)).Label("noise", "loud").
				Annotation("espalier.dev/placement", "spread="+zoneKey).Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "100m"}))
			s.pods = append(s.pods, loud)
		}
		if o := h.run(t, s); o.placed != 4 || slices.Contains(o.nodes, "n0") {
			t.Errorf("%s: the pods are on %v, and one of n0 prefers them elsewhere", name, o.nodes)
		}
	}
}

// house is the profile over the scheduler's real cache: it goes through whole cycles and leaves out only the API server.
type house struct {
	placementtest.TB
	ctx      context.Context
	f        framework.Framework
	cache    cache.Cache
	snapshot *cache.Snapshot
}

// place leads a pod through a cycle and returns its node, "" if it fits nowhere.
func (h *house) place(pod *corev1.Pod) (node string) {
	h.Helper()
	if err := h.cache.UpdateSnapshot(klog.Background(), h.snapshot); err != nil {
		h.Fatal(err)
	}
	ctx, state := h.ctx, framework.NewCycleState()
	fit := fitting(h, h.f, state, pod)
	if len(fit) == 0 {
		return ""
	}
	if status := h.f.RunPreScorePlugins(ctx, state, pod, fit); !status.IsSuccess() {
		h.Fatalf("PreScore of %s: %v", pod.Name, status)
	}
	scores, status := h.f.RunScorePlugins(ctx, state, pod, fit)
	if !status.IsSuccess() {
		h.Fatalf("Score of %s: %v", pod.Name, status)
	}
	node = best(scores)[0]
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if err := h.cache.AssumePod(klog.Background(), assumed); err != nil {
		h.Fatal(err)
	}
	if status := h.f.RunReservePluginsReserve(ctx, state, assumed, node); !status.IsSuccess() {
		h.Fatalf("Reserve of %s: %v", pod.Name, status)
	}
	return node
}
