// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

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
					r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))
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
	r.must(err)
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
