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
