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
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
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
func refusedBy(f *filtered) (refused int) {
	for _, nodes := range f.Reasons() {
		refused += nodes
	}
	return refused
}

// The words of a preemption that helps nobody begin with the number of nodes, which the
// reasons do not tell where nodes have several.
func TestRefusalOfAsManyReasonsOnMoreNodes(t *testing.T) {
	nodes := tree.NewNodes(0)
	f := newFiltered(nodes, new(corev1.Pod))
	full := func(reasons ...string) *fwk.Status {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasons...).WithPlugin("Fit")
	}
	refuse := func(name string, reasons ...string) {
		id := nodes.Set(name, tree.Facts{})
		f.refresh()
		f.Refuse(id, f.reason(full(reasons...)))
	}
	pod := webPod("p", "").Obj()
	refuse("a", "no CPU", "no memory")
	refuse("b", "no CPU", "no memory")
	is := f.refusal(pod, 0)
	is.Learn(refused)
	if again := f.refusal(pod, 0); again.Message != "2 no CPU, 2 no memory" || again.Preemption != refused {
		t.Errorf("got %+v", again)
	}
	never := webPod("q", "").PreemptionPolicy(corev1.PreemptNever).Obj()
	f.refusal(never, 0).Learn(full("never"))
	if again := f.refusal(pod, 0); again.Preemption != refused || f.refusal(never, 0).Preemption == refused {
		t.Error("a pod that never preempts and one that may are told the same")
	}
	refuse("a", "no CPU")
	refuse("c", "no memory")
	if other := f.refusal(pod, 0); other.Message != "2 no CPU, 2 no memory" || other.Preemption != nil {
		t.Errorf("on three nodes: %+v", other)
	}
}
