// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"fmt"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// What a pod with limits pays: counting once, and a look at each node.
func BenchmarkCycle(b *testing.B) {
	for _, pods := range []int{0, 20} { // on every node, of which one is of the revision
		b.Run(fmt.Sprintf("nodes=5000/pods=%d", pods), func(b *testing.B) {
			r := newRig(b.Context(), b)
			for i := range 5000 {
				name := fmt.Sprintf("node-%04d", i)
				r.join(fmt.Sprintf("%s kubernetes.io/hostname=%s rack=%d", name, name, i%50))
				for p := range pods {
					r.runs(name, web(fmt.Sprintf("%s-%d", name, p), fmt.Sprint(p), ""))
				}
			}
			nodes := r.nodes()
			pod := web("p", "0", "kubernetes.io/hostname=2,rack=200").Obj()
			b.Run("PreFilter", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, s := r.pl.PreFilter(r.ctx, framework.NewCycleState(), pod, nodes); !s.IsSuccess() {
						b.Fatal(s)
					}
				}
			})
			state := framework.NewCycleState()
			if _, s := r.pl.PreFilter(r.ctx, state, pod, nodes); !s.IsSuccess() {
				b.Fatal(s)
			}
			b.Run("Filter of all", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for _, n := range nodes {
						if s := r.pl.Filter(r.ctx, state, pod, n); !s.IsSuccess() {
							b.Fatal(s)
						}
					}
				}
			})
			b.Run("Clone", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_ = state.Clone()
				}
			})
		})
	}
}
