// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
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

// schedule decides a new pod. The nodes that score best must be those that the oracle calls best; any of them is taken.
func (w *world) schedule(*rapid.T) {
	w.born++
	i := rapid.IntRange(0, 1).Draw(w.t, "workload")
	levels := w.levels[i]
	if rapid.IntRange(0, 9).Draw(w.t, "levels of its own") == 0 {
		levels = w.drawLevels()
	}
	p := &worldPod{
		workload: fmt.Sprint("w", i), revision: rapid.SampledFrom([]string{"1", "2"}).Draw(w.t, "revision"),
		cached: true, assumed: true, binding: true, state: w.newState(),
	}
	p.pod = webPod(fmt.Sprint("p", w.born), levels).Label(clusterview.WorkloadLabel, p.workload).Label("pod-template-hash", p.revision).Obj()
	seen := w.seen(p)
	var fit []string
	hinted := rapid.Bool().Draw(w.t, "by a hint")
	for _, n := range seen {
		// Now and then there is a reason of this one pod, of which none is remembered.
		if w.fits(p, n.Name) && (hinted || rapid.IntRange(0, 7).Draw(w.t, "pod refused") > 0) {
			fit = append(fit, n.Name)
		}
	}
	var node string
	switch {
	case hinted:
		node = w.propose(p, seen, fit)
	case len(fit) > 1:
		node = w.decide(p, seen, fit)
	case len(fit) == 1: // of one node, the scheduler asks for no scores
		node = fit[0]
	}
	if node == "" {
		return
	}
	p.pod = w.assume(p.pod, node)
	w.unproven(p.pod, +1)
	w.pods[p.pod.Name] = p
}

// decide holds the scores of a pod against the oracle, and returns one of the best nodes.
func (w *world) decide(p *worldPod, seen []placement.Node, fit []string) string {
	fits := func(name string) bool { return slices.Contains(fit, name) }
	want := oracle.BestClass(mustLevels(w.rig, p.pod).List, w.rule(), seen, clusterview.Request(p.pod), fits)
	var best []string
	scores := w.rank(p.pod, p.state, fit...)
	for _, name := range sortedKeys(scores) {
		if scores[name] == fwk.MaxScore {
			best = append(best, name)
		}
	}
	if d := gocmp.Diff(want, best); d != "" {
		w.t.Fatalf("best nodes for %s with %v, oracle -, plugin +:\n%s\n%s", p.pod.Name, p.pod.Annotations, d, drawing.Tree(w.shown(p.pod)))
	}
	if err := w.shown(p.pod).Validate(); err != nil {
		w.t.Fatal(err)
	}
	return rapid.SampledFrom(best).Draw(w.t, "chosen")
}

// TestPropertyTheBestAreTheOracles goes through random lives of a cluster.
func TestPropertyTheBestAreTheOracles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"schedule": w.schedule, "schedule 2": w.schedule, "schedule 3": w.schedule, "schedule 4": w.schedule,
			"confirm": w.confirm, "binding fails": w.bindingFails, "delete pod": w.deletePod, "terminate pod": w.terminatePod,
			"change node": w.changeNode, "node comes or goes": w.nodeComesOrGoes,
			"fare": w.fare, "fare 2": w.fare, "faults are kept or not": w.keepFaults, "particulars are forgotten": w.forgetParticulars,
		})
	})
}

// propose returns the node that the plugin proposes for a pod, which must be one of those that the oracle calls best, and "" only where
// none fits. All pods have the same needs: what was said of a node to one is remembered for the next, whatever its levels are.
func (w *world) propose(p *worldPod, seen []placement.Node, fit []string) string {
	fits := func(name string) bool { return slices.Contains(fit, name) }
	w.feasible()
	node, _, err := w.pl.Hint(w.ctx, p.state, p.pod, true, func(name string) *fwk.Status { return statusIf(fits(name)) })
	w.must(err)
	if node == "" && len(fit) == 0 {
		return ""
	}
	if want := oracle.BestClass(mustLevels(w.rig, p.pod).List, w.rule(), seen, clusterview.Request(p.pod), fits); !slices.Contains(want, node) {
		w.t.Fatalf("%q is proposed for %s with %v, the oracle's best are %q\n%s", node, p.pod.Name, p.pod.Annotations, want, drawing.Tree(w.shown(p.pod)))
	}
	if err := w.shown(p.pod).Validate(); err != nil {
		w.t.Fatal(err)
	}
	return node
}
