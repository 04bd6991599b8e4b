// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

// sampled is a configuration with the plugin NodeSampling.
var sampled = strings.Replace(configuration, "      - {name: Preferences}\n", "      - {name: Preferences}\n      - {name: NodeSampling}\n", 1)

// newSampling gives a rig nodes, and a wrapped profile with the plugin NodeSampling: a tenth of the nodes of each of two zones.
func newSampling(t placementtest.TB, r *rig, nodes int) *rig {
	t.Helper()
	known := factory.Core().V1().Nodes().Informer().GetIndexer()
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		node := st.MakeNode().Name(name).Label(corev1.LabelHostname, name).Label(corev1.LabelTopologyZone, fmt.Sprint(i%2)).
			Label("zone", fmt.Sprint(i%3)).Label("rack", fmt.Sprint(i%50)).
			Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "200", corev1.ResourceCPU: "64", corev1.ResourceMemory: "256Gi"}).Obj()
		r.cache.AddNode(r.logger, node)
		must(r, known.Add(node))
	}
	profiles := profile.Map{"espalier-scheduler": r.framework(sampled)}
	var changes podcount.Changes
	r.cache, changes = track(r.cache)
	if without := wrap(r.logger, profiles, nil, changes, plugins.NodeLocal()); len(without) > 0 {
		t.Fatal(without)
	}
	if without := sample(profiles); len(without) > 0 {
		t.Fatal(without)
	}
	r.wrapped = profiles["espalier-scheduler"]
	return r
}

// forgetNodes takes the nodes out of the informer that all tests share.
func forgetNodes(t testing.TB) {
	t.Cleanup(func() {
		known := factory.Core().V1().Nodes().Informer().GetIndexer()
		for _, node := range known.List() {
			if err := known.Delete(node); err != nil {
				t.Error(err)
			}
		}
	})
}

// left are the nodes that a pod is decided about by, nil for all.
func (r *rig) left(pod *corev1.Pod) sets.Set[string] {
	r.Helper()
	must(r, r.cache.UpdateSnapshot(r.logger, r.snapshot))
	result, status, _ := r.wrapped.RunPreFilterPlugins(r.ctx, framework.NewCycleState(), pod)
	if !status.IsSuccess() {
		r.Fatalf("PreFilter of %s: %v", pod.Name, status)
	}
	if result.AllNodes() {
		return nil
	}
	return result.NodeNames
}

// preferring is an affinity for which no node is proposed: scores are to decide.
func preferring(label string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpExists}}},
	}}}}
}

// A pod on the full path is decided about by a tenth of the nodes of each zone, all of which fit.
func TestSample(t *testing.T) {
	forgetNodes(t)
	r := newSampling(t, newRig(t.Context(), t), 200)
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
	pod.Spec.Affinity = preferring("disk")
	sample := r.left(pod)
	zones := make(map[string]int)
	for node := range sample {
		var i int
		_, err := fmt.Sscanf(node, "node-%d", &i)
		must(t, err)
		zones[fmt.Sprint(i%2)]++
	}
	if len(sample) != 20 || zones["0"] != 10 || zones["1"] != 10 {
		t.Errorf("it is decided about by %d nodes, of each zone %v", len(sample), zones)
	}

	// Only what fits is in a sample, and if that is nothing, all nodes are looked at.
	only := pod.DeepCopy()
	only.Spec.NodeSelector = map[string]string{"rack": "7"}
	for node := range r.left(only) {
		if !slices.Contains([]string{"node-00007", "node-00057", "node-00107", "node-00157"}, node) {
			t.Errorf("node %s is in the sample, and not in the rack", node)
		}
	}
	none := pod.DeepCopy()
	none.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")},
	}}}
	if sample := r.left(none); sample != nil {
		t.Errorf("it fits on no node, and is decided about by %v", sample)
	}
}

// A pod for which a node is proposed needs no sample, and neither does one that has its nodes already.
func TestNoSample(t *testing.T) {
	forgetNodes(t)
	r := newSampling(t, newRig(t.Context(), t), 200)
	plain := st.MakePod().Namespace("ns").Name("p").UID("p").Obj()
	nominated := plain.DeepCopy()
	nominated.Spec.Affinity, nominated.Status.NominatedNodeName = preferring("disk"), "node-00001"
	for name, pod := range map[string]*corev1.Pod{"plain": plain, "nominated": nominated} {
		if sample := r.left(pod); sample != nil {
			t.Errorf("%s: it is decided about by %v", name, sample)
		}
	}
	pinned := plain.DeepCopy()
	pinned.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-00001"}}}}},
	}}}
	if sample := r.left(pinned); !sample.Equal(sets.New("node-00001")) {
		t.Errorf("pinned to a node, it is decided about by %v", sample)
	}
}

// filtering is an extender that filters, or not.
type filtering struct {
	fwk.Extender
	filters bool
}

func (f filtering) IsFilter() bool { return f.filters }

// An extender that filters is asked after everything else: if it refused all of a sample, nodes that fit would never be looked at.
func TestNoSampleBesideExtendersThatFilter(t *testing.T) {
	r := newRig(t.Context(), t)
	for filters, want := range map[bool]string{false: "", true: `profile "it": sampling disabled`} {
		f := r.framework(sampled, frameworkruntime.WithExtenders([]fwk.Extender{filtering{}, filtering{filters: filters}}))
		profiles := profile.Map{"it": f}
		without := strings.Join(sample(profiles), "")
		if samples := profiles["it"] != f; samples == filters || !strings.HasPrefix(without, want) || filters != (without != "") {
			t.Errorf("an extender that filters, %t: it samples, %t, and says %q", filters, samples, without)
		}
	}
}

func benchPod(i, workload int) *corev1.Pod {
	return st.MakePod().Namespace("ns").Name(fmt.Sprint("p", i)).UID(fmt.Sprint("p", i)).
		Label(clusterview.WorkloadLabel, fmt.Sprint("w", workload)).
		Annotation(clusterview.PlacementAnnotation, "spread=zone,spread=rack").
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "10m"}).Obj()
}

// What a pod with preferences of its own costs, for which no node is proposed: by all nodes, and by a tenth of those of each zone.
func BenchmarkPreferences(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 20000} {
		for _, sampled := range []bool{false, true} {
			b.Run(fmt.Sprintf("nodes=%d/sampled=%t", nodes, sampled), func(b *testing.B) {
				forgetNodes(b)
				r := newSampling(b, newRig(b.Context(), b), nodes)
				f := r.judge
				if sampled {
					f = r.wrapped
				}
				for i := 0; b.Loop(); i++ {
					pod := benchPod(i, 0)
					pod.Spec.Affinity = preferring("disk")
					must(r, r.cache.UpdateSnapshot(r.logger, r.snapshot))
					node, state := r.fullPath(f, pod)
					r.assume(pod, state, node)
				}
			})
		}
	}
}

func (r *rig) fullPath(f framework.Framework, pod *corev1.Pod) (string, *framework.CycleState) {
	r.Helper()
	state := framework.NewCycleState()
	left, _, _ := f.RunPreFilterPlugins(r.ctx, state, pod)
	all, err := r.snapshot.NodeInfos().List()
	must(r, err)
	if !left.AllNodes() {
		all = slices.DeleteFunc(slices.Clone(all), func(n fwk.NodeInfo) bool { return !left.NodeNames.Has(n.Node().Name) })
	}
	fit := make([]fwk.NodeInfo, len(all))
	f.Parallelizer().Until(r.ctx, len(all), func(i int) {
		if f.RunFilterPluginsWithNominatedPods(r.ctx, state, pod, all[i]).IsSuccess() {
			fit[i] = all[i]
		}
	}, "filter")
	_ = f.RunPreScorePlugins(r.ctx, state, pod, fit)
	scores, status := f.RunScorePlugins(r.ctx, state, pod, fit)
	if !status.IsSuccess() {
		r.Fatal(status)
	}
	sorted := framework.NewSortedScoredNodes(scores)
	return sorted.Pop().Name, state
}

// A decision must cost what it costs whatever the number of workloads and of levels. Time is not
// to be trusted on machines that others use, so that what is compared is the memory that is asked
// for: a copy of the nodes for each pod, or a branch for each node and level, would be many times as much.
func TestMemoryOfADecision(t *testing.T) {
	const nodes = 400
	plain := "spread=zone,spread=rack"
	deep := "spread=" + corev1.LabelHostname
	for i := range 15 {
		deep += fmt.Sprint(",spread=none-", i)
	}
	perPod := func(workloads int, levels string) uint64 {
		r := newRig(t.Context(), t)
		for i := range nodes {
			name := fmt.Sprintf("node-%03d", i)
			r.cache.AddNode(r.logger, st.MakeNode().Name(name).Label(corev1.LabelHostname, name).
				Label("zone", fmt.Sprint(i%3)).Label("rack", fmt.Sprint(i%30)).
				Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "200", corev1.ResourceCPU: "64", corev1.ResourceMemory: "256Gi"}).Obj())
		}
		pods := 0
		place := func(n int) {
			for range n {
				pods++
				pod := benchPod(pods, pods%workloads)
				pod.Annotations[clusterview.PlacementAnnotation] = levels
				node, state := r.hint(pod)
				if node == "" {
					t.Fatal("no hint")
				}
				r.assume(pod, state, node)
			}
		}
		const counted = 300
		place(900 - counted) // so that each of 300 workloads stands somewhere, and as many pods are there in each case
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		place(counted)
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / counted
	}
	one := perPod(1, plain)
	t.Logf("a decision asks for %d bytes", one)
	if many := perPod(300, plain); many > one*3/2 {
		t.Errorf("with 300 workloads a decision asks for %d bytes, with one for %d", many, one)
	}
	if many := perPod(1, deep); many > one*3/2 {
		t.Errorf("with 16 levels a decision asks for %d bytes, with two for %d", many, one)
	}
}
