// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
)

// A cluster whose nodes are replaced one by one by nodes of other names, under a scheduler
// that is never idle.
func TestRegression_AnswersAboutNodesThatAreGoneAreForgotten(t *testing.T) {
	const nodes = 20
	r, pod := newRig(t.Context(), t, args()), webPod("p", "spread=zone").Obj()
	needs, err := clusterview.NeedsOf(pod)
	r.must(err)
	var here []*corev1.Node
	most := 0
	for i := range 10 * nodes {
		here = append(here, r.join(fmt.Sprintf("n%03d", i), "zone=a"))
		if len(here) > nodes {
			r.must(r.cache.RemoveNode(r.logger, here[0]))
			here = here[1:]
		}
		r.feasible()
		_, _, err := r.pl.Hint(r.ctx, framework.NewCycleState(), pod, true, func(string) *fwk.Status { return refused })
		r.must(err)
		most = max(most, refusedBy(r.pl.trees.answers(needs, pod)))
	}
	if most < nodes || most > 3*nodes {
		t.Errorf("there were answers about %d nodes, want those about the %d that are there and at most %d in all", most, nodes, 3*nodes)
	}
}

// refusedBy is how many nodes are refused.
func refusedBy(f *feasibility.Class) (refused int) {
	for _, nodes := range f.Reasons() {
		refused += nodes
	}
	return refused
}
