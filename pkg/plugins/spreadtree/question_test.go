// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
)

// crowdOfFilters answers no for all nodes but one, and counts the questions.
type crowdOfFilters struct {
	fit string

	mu    sync.Mutex // guards asked
	asked map[string]int
}

func (c *crowdOfFilters) fits(node string) *fwk.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[node]++
	return statusIf(node == c.fit)
}

var refused = fwk.NewStatus(fwk.Unschedulable, "refused by the test").WithPlugin("Test")

func statusIf(fits bool) *fwk.Status {
	if fits {
		return nil
	}
	return refused
}

// wide is a rig of n nodes in one zone.
func wide(t *testing.T, n int) *rig {
	r := newRig(t.Context(), t, args())
	for i := range n {
		r.join(fmt.Sprintf("n%03d", i), "zone=a")
	}
	r.feasible()
	return r
}

// A pod that fits on few nodes has all of them asked about, once, and the next like it none.
func TestHintOfARareFit(t *testing.T) {
	r := wide(t, 500)
	for _, lasting := range []bool{true, false} {
		for i := range 2 {
			c := &crowdOfFilters{fit: "n444", asked: map[string]int{}}
			node, _, err := r.pl.Hint(r.ctx, framework.NewCycleState(), webPod(fmt.Sprint("p", i), "").Obj(), lasting, c.fits)
			if err != nil || node != "n444" {
				t.Fatalf("got %q, %v", node, err)
			}
			// The one that is proposed is asked about again, whatever is known.
			want := 500
			if lasting && i > 0 {
				want = 1
			}
			if len(c.asked) != want || c.asked["n000"] > 1 || c.asked["n444"] > 1 {
				t.Errorf("lasting %t, pod %d: asked about %d nodes, want %d", lasting, i, len(c.asked), want)
			}
		}
	}
}

// Pods that fit nowhere cost no topology, whatever lists of levels they name: a node that has changed since is asked about without one.
func TestPodsThatFitNowhereCostNoTopology(t *testing.T) {
	r := wide(t, 50)
	c := &crowdOfFilters{asked: map[string]int{}}
	for i := range 10 {
		r.runs("n007", "1", 1)
		r.feasible()
		pod := ofWorkload(fmt.Sprint("w", i), fmt.Sprint("p", i), fmt.Sprintf("spread=zone,spread=level-%d", i)).Obj()
		node, is, err := r.pl.Hint(r.ctx, framework.NewCycleState(), pod, true, c.fits)
		if err != nil || node != "" || is == nil {
			t.Fatalf("pod %d: proposed %q, refused %v, %v", i, node, is, err)
		}
	}
	if n := r.pl.trees.topologies.Len(); n != 0 {
		t.Errorf("there are %d topologies", n)
	}
	if c.asked["n000"] != 1 || c.asked["n007"] != 10 {
		t.Errorf("a node was asked about %d times, and one that has changed each time %d times", c.asked["n000"], c.asked["n007"])
	}
}

// A node that the levels of a workload leave out has not been refused to all others with
// its needs, when all that are left are asked about together.
func TestRegression_NodesThatALevelLeavesOutAreNotRefusedToOthers(t *testing.T) {
	r := wide(t, 150)
	r.join("lone")
	propose := func(pod *corev1.Pod, fits func(string) bool) string {
		r.feasible()
		node, _, err := r.pl.Hint(r.ctx, framework.NewCycleState(), pod, true, func(node string) *fwk.Status { return statusIf(fits(node)) })
		r.must(err)
		return node
	}
	if got := propose(webPod("p", "spread=zone;nodesWithoutKey=Exclude").Obj(), func(string) bool { return false }); got != "" {
		t.Errorf("%q is proposed to a pod that fits nowhere", got)
	}
	api := ofWorkload("api", "q", "spread=zone").Obj()
	if got := propose(api, func(node string) bool { return node == "lone" }); got != "lone" {
		t.Errorf("%q is proposed to a pod of another workload, want lone, the only node that fits", got)
	}
}

// When many have been refused one by one, all that are left are asked about together; what
// fails there is told, and nothing is taken for an answer.
func TestHintAfterAnErrorAmongMany(t *testing.T) {
	r := wide(t, 50)
	for i := range 50 {
		r.join(fmt.Sprintf("m%03d", i), "zone=b")
	}
	r.feasible()
	r.pl.prefetch.After = 10
	broken, pod := errors.New("no answer"), webPod("p", "spread=zone").Obj()
	_, _, err := r.pl.Hint(r.ctx, framework.NewCycleState(), pod, true, func(node string) *fwk.Status {
		if node == "n033" {
			return fwk.AsStatus(broken)
		}
		return statusIf(false)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ended, end := context.WithCancel(r.ctx)
	end()
	other := webPod("q", "spread=zone").HostPort(80).Obj()
	if _, _, err := r.pl.Hint(ended, framework.NewCycleState(), other, true, func(string) *fwk.Status { return refused }); !errors.Is(err, context.Canceled) {
		t.Errorf("in a cycle that has ended: %v", err)
	}
	c := &crowdOfFilters{fit: "m033", asked: map[string]int{}}
	if node, _, err := r.pl.Hint(r.ctx, framework.NewCycleState(), pod, false, c.fits); err != nil || node != "m033" {
		t.Errorf("got %q, %v", node, err)
	}
}

// A cluster whose nodes are replaced one by one by nodes of other names, under a scheduler that is never idle.
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
