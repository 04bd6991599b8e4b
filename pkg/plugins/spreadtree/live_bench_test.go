// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// crowd is 5,000 nodes with pods of a hundred other workloads on each.
func crowd(b *testing.B, pods int) *rig {
	r := newRig(b.Context(), b, args())
	for i := range 5000 {
		node := fmt.Sprintf("node-%04d", i)
		r.join(node, fmt.Sprint("zone=", i%3), fmt.Sprint("rack=", i%50))
		for p := range pods {
			name := fmt.Sprintf("%s-%d", node, p)
			r.must(r.cache.AddPod(r.logger, ofWorkload(fmt.Sprint("other-", (i+p)%100), name, "").Node(node).Obj()))
		}
	}
	r.feasible()
	return r
}

// ofWorkload is a pod of a workload that a label names.
func ofWorkload(workload, name, levels string) *st.PodWrapper {
	return webPod(name, levels).Label(clusterview.WorkloadLabel, workload)
}

// live brings the tree of a pod's batch up to date as a cycle does, and takes a node.
func (r *rig) live(pod *corev1.Pod, node string) {
	r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))
	c, err := r.pl.read(framework.NewCycleState(), pod)
	r.must(err)
	r.pl.mu.Lock()
	t := r.pl.trees.tally(r.pl.trees.index.RefreshFor(pod, c.snapshot), c.levels, nil)
	r.pl.mu.Unlock()
	if !t.Topology().Has(int32(len(c.snapshot.Nodes) - 1)) {
		r.Fatal("the topology has too few nodes")
	}
	r.assume(pod, node)
}

// What the live tree costs each pod, whatever its path: the one before has changed a node.
func BenchmarkLiveTree(b *testing.B) {
	for _, pods := range []int{10, 30, 60, 100} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			r := crowd(b, pods)
			for i := range 100 {
				r.live(webPod(fmt.Sprint("warm", i), "spread=zone,spread=rack").Obj(), fmt.Sprintf("node-%04d", i))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.live(webPod(fmt.Sprint("p", i), "spread=zone,spread=rack").Obj(), fmt.Sprintf("node-%04d", i*7%5000))
			}
		})
	}
}

// A hundred workloads that take turns, and workloads of one pod each.
func BenchmarkLiveTurns(b *testing.B) {
	for _, tc := range []struct {
		name      string
		workloads int
		warm      int
	}{{"hundred", 100, 200}, {"alone", 1 << 40, 10}} {
		b.Run(tc.name, func(b *testing.B) {
			r := crowd(b, 10)
			turn := func(i int) {
				pod := ofWorkload(fmt.Sprint("w", i%tc.workloads), fmt.Sprint("p", i), "spread=zone,spread=rack").Obj()
				r.live(pod, fmt.Sprintf("node-%04d", i*7%5000))
			}
			for i := range tc.warm {
				turn(i)
			}
			b.ReportAllocs()
			for i := tc.warm; b.Loop(); i++ {
				turn(i)
			}
		})
	}
}
