// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// What a pod pays on the score path, where all nodes have been filtered.
func BenchmarkPreScore(b *testing.B) {
	for _, batches := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=5000/batches=%d", batches), func(b *testing.B) {
			r := newRig(b.Context(), b, args())
			for i := range 5000 {
				r.join(fmt.Sprintf("node-%04d", i), fmt.Sprint("zone=", i%3), fmt.Sprint("rack=", i%50))
			}
			r.runs("node-0000", "old", 1) // so that each batch has a tally of its own
			nodes := r.feasible()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				pod := webPod(fmt.Sprint("p", i), "spread=zone,spread=rack").Label("pod-template-hash", fmt.Sprint(i%batches)).Obj()
				if s := r.pl.PreScore(r.ctx, framework.NewCycleState(), pod, nodes); !s.IsSuccess() {
					b.Fatal(s)
				}
			}
		})
	}
}
