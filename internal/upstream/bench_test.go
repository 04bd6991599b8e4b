// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// zoned is a rig of 5,000 nodes in three zones and 50 racks, with n pods of others on each.
func zoned(b *testing.B, n int) *rig {
	r := newRig(b.Context(), b)
	for i := range 5000 {
		name := fmt.Sprintf("node-%04d", i)
		r.cache.AddNode(r.logger, st.MakeNode().Name(name).Label(corev1.LabelHostname, name).
			Label("zone", fmt.Sprint(i%3)).Label("rack", fmt.Sprint(i%50)).
			Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "200", corev1.ResourceCPU: "64", corev1.ResourceMemory: "256Gi"}).Obj())
		for j := range n {
			pod := fmt.Sprint(name, "-", j)
			r.must(r.cache.AddPod(r.logger, st.MakePod().Namespace("others").Name(pod).UID(pod).Node(name).Obj()))
		}
	}
	return r
}

func benchPod(i, workload int) *corev1.Pod {
	return st.MakePod().Namespace("ns").Name(fmt.Sprint("p", i)).UID(fmt.Sprint("p", i)).
		Label(clusterview.WorkloadLabel, fmt.Sprint("w", workload)).
		Annotation(clusterview.PlacementAnnotation, "spread=zone,spread=rack").
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "10m"}).Obj()
}

// What a pod costs from the snapshot to Reserve, by a hint. Each of the workloads takes its turn.
func BenchmarkHint(b *testing.B) {
	for _, workloads := range []int{1, 100, 1000} {
		for _, crowd := range []int{0, 30} {
			b.Run(fmt.Sprintf("nodes=5000/workloads=%d/pods=%d", workloads, crowd), func(b *testing.B) {
				r := zoned(b, crowd)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					pod := benchPod(i, i%workloads)
					node, state := r.hint(pod)
					if node == "" {
						b.Fatal("no hint")
					}
					r.assume(pod, state, node)
				}
			})
		}
	}
}

// What it costs to compare the nodes that tie, where each has 50 images, and the pod's is one of them.
func BenchmarkHintAmongImages(b *testing.B) {
	for _, image := range []string{"nobody-has-it:1", "image-49:1"} {
		b.Run(image, func(b *testing.B) {
			r := newRig(b.Context(), b)
			images := make(map[string]int64)
			for i := range 50 {
				images[fmt.Sprintf("image-%d:1", i)] = 200 << 20
			}
			for i := range 5000 {
				r.cache.AddNode(r.logger, st.MakeNode().Name(fmt.Sprintf("node-%04d", i)).Label("zone", fmt.Sprint(i%3)).Label("rack", fmt.Sprint(i%50)).
					Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "200", corev1.ResourceCPU: "64", corev1.ResourceMemory: "256Gi"}).Images(images).Obj())
			}
			for i := 0; b.Loop(); i++ {
				pod := benchPod(i, i%100)
				pod.Spec.Containers[0].Image = image
				node, state := r.hint(pod)
				r.assume(pod, state, node)
			}
		})
	}
}

// The same by filtering and scoring all nodes, in the framework's own parallel way.
func BenchmarkFullPath(b *testing.B) {
	r := zoned(b, 0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pod := benchPod(i, 0)
		r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))
		node, state := r.fullPath(r.judge, pod)
		r.assume(pod, state, node)
	}
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
