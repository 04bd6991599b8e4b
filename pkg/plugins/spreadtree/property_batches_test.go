// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
)

// TestPropertyBatchesEndEven places a batch, some of it after bindings that failed,
// and holds the end to what spreading promises.
func TestPropertyBatchesEndEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SampledFrom([]string{"", "spread=zone", "spread=zone,spread=rack", "spread=zone;weight.a=2;weight.b=3", "pack=zone,spread=rack"}).Draw(t, "levels")
		r := newRig(t.Context(), t, args())
		room := make(map[string]int)
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			name := fmt.Sprint("n", i)
			r.join(name, "zone="+rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"), "rack="+rapid.SampledFrom([]string{"1", "2"}).Draw(t, "rack"))
			r.runs(name, "2", rapid.IntRange(0, 2).Draw(t, "of the revision"))
			r.runs(name, "1", rapid.IntRange(0, 2).Draw(t, "of an older one"))
			room[name] = rapid.IntRange(0, 3).Draw(t, "room")
		}
		before := batchView(r, levels)
		var placed []string
		k := rapid.IntRange(0, 6).Draw(t, "pods")
		for i := 0; len(placed) < k; i++ {
			pod := webPod(fmt.Sprint("p", i), levels).Obj()
			var fit, best []string
			for _, n := range before {
				if room[n.Name]-count(placed, n.Name) > 0 {
					fit = append(fit, n.Name)
				}
			}
			if len(fit) == 0 {
				break
			}
			state := framework.NewCycleState()
			for name, score := range r.rank(pod, state, fit...) {
				if score == fwk.MaxScore {
					best = append(best, name)
				}
			}
			slices.Sort(best)
			node := rapid.SampledFrom(best).Draw(t, "chosen")
			assumed := r.assume(pod, node)
			if rapid.IntRange(0, 4).Draw(t, "its binding fails") == 0 {
				r.must(r.cache.ForgetPod(r.logger, assumed))
				continue
			}
			placed = append(placed, node)
		}
		if err := oracle.CheckPromise(mustLevels(r, webPod("p", levels).Obj()).List, before, k, func(n string) int { return room[n] }, placed); err != nil {
			t.Fatalf("%s: %v", strings.Join(placed, " "), err)
		}
	})
}

// batchView is what the cluster holds for the batch of web's second revision.
func batchView(r *rig, levels string) []placement.Node {
	var nodes []placement.Node
	for _, info := range r.feasible() {
		n := placement.Node{Name: info.Node().Name, Values: clusterview.Values(info.Node(), mustLevels(r, webPod("p", levels).Obj()).List)}
		for _, p := range info.GetPods() {
			n.Tally = n.Tally.Add(placement.Tally{Workload: 1, All: 1})
			if p.GetPod().Labels["pod-template-hash"] == "2" {
				n.Tally.Revision++
			}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b placement.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

func count(names []string, name string) (n int) {
	for _, x := range names {
		if x == name {
			n++
		}
	}
	return n
}
