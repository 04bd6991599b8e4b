// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
)

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
