// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ordinal

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// history is a workload on zones of ten, five and two nodes, to which things happen.
type history struct {
	random *rand.Rand
	tree   *simulation.Tree
	// nodes are those of each zone that are alive, away the others, with the step at which each comes back.
	nodes map[string]string
	away  map[string]int
	pods  []numbered
	// downs counts the scale-downs, uneven those of them that have left zones less even than they could be.
	downs, uneven int
	// gaps counts the pods that were lost and not replaced in their zone, repairs the pods that were given other numbers.
	gaps, repairs int
}

// numbered is a pod with its number.
type numbered struct {
	node, zone string
	is         Ordinal
}

var byZone = []level.Level{{Strategy: level.Spread, Property: level.Property{Label: "zone"}, NodesWithoutKey: level.LastResort}}

func newHistory(seed uint64) *history {
	h := &history{random: rand.New(rand.NewPCG(seed, 0)), tree: simulation.New(byZone), nodes: make(map[string]string), away: make(map[string]int)}
	for z, n := range []int{10, 5, 2} {
		for i := range n {
			h.join(fmt.Sprintf("n-%d-%d", z, i), fmt.Sprint("zone-", z))
		}
	}
	return h
}

func (h *history) join(node, zone string) {
	h.nodes[node] = zone
	h.tree.Set(placement.Node{Name: node, Values: []placement.Value{{Text: zone}}})
}

func (h *history) place(pods int) {
	for _, node := range h.tree.Place(pods, func(string) bool { return true }) {
		zone, taken := h.nodes[node], &Set{}
		for _, p := range h.pods {
			if p.zone == zone {
				taken.Add(p.is.N)
			}
		}
		h.pods = append(h.pods, numbered{node, zone, Ordinal{N: taken.Lowest()}})
	}
}

// sizes are the pods of each zone, the least first.
func (h *history) sizes() (sizes []int) {
	of := map[string]int{"zone-0": 0, "zone-1": 0, "zone-2": 0}
	for _, p := range h.pods {
		of[p.zone]++
	}
	for _, n := range of {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	return sizes
}

// remove removes the pods that cost least, as a ReplicaSet does; of those that cost the same any. It is even if it leaves what is left when the
// highest zone gives one at a time.
func (h *history) remove(pods int) {
	want := h.sizes()
	for range pods {
		want[2] = max(0, want[2]-1)
		slices.Sort(want)
	}
	h.random.Shuffle(len(h.pods), func(i, j int) { h.pods[i], h.pods[j] = h.pods[j], h.pods[i] })
	slices.SortStableFunc(h.pods, func(a, b numbered) int { return cmp.Compare(a.is.Cost(), b.is.Cost()) })
	for _, p := range h.pods[:pods] {
		h.tree.Add(p.node, placement.Tally{}.Sub(placement.Tally{Revision: 1, Workload: 1, All: 1}))
	}
	h.pods = slices.Clone(h.pods[pods:])
	h.downs++
	if !slices.Equal(h.sizes(), want) {
		h.uneven++
	}
}

// lose has a node die. Its pods are replaced at once, elsewhere, and it comes back some steps later.
func (h *history) lose(step int) {
	alive := make([]string, 0, len(h.nodes))
	for node := range h.nodes {
		if h.away[node] == 0 {
			alive = append(alive, node)
		}
	}
	slices.Sort(alive)
	if len(alive) == 0 {
		return
	}
	node := alive[h.random.IntN(len(alive))]
	zone := h.nodes[node]
	h.away[node] = step + 1 + h.random.IntN(5)
	h.tree.Remove(node)
	before := len(h.pods)
	h.pods = slices.DeleteFunc(h.pods, func(p numbered) bool { return p.node == node })
	lost := before - len(h.pods)
	h.place(lost)
	for _, p := range h.pods[before-lost:] {
		if p.zone == zone {
			lost--
		}
	}
	h.gaps += lost
}

func (h *history) comeBack(step int) {
	for _, node := range slices.Sorted(maps.Keys(h.away)) {
		if h.away[node] == step {
			delete(h.away, node)
			h.join(node, h.nodes[node])
		}
	}
}

// roll replaces all pods by those of another revision.
func (h *history) roll() {
	pods := len(h.pods)
	for node, zone := range h.nodes {
		if h.away[node] == 0 {
			h.tree.Set(placement.Node{Name: node, Values: []placement.Value{{Text: zone}}})
		}
	}
	h.pods = nil
	h.place(pods)
}

// repair gives the pods the numbers that they should have. The order of the pods is that in which they came, until some are removed.
func (h *history) repair() {
	for _, zone := range []string{"zone-0", "zone-1", "zone-2"} {
		var at []int
		var numbers []int32
		for i, p := range h.pods {
			if p.zone == zone {
				at, numbers = append(at, i), append(numbers, p.is.N)
			}
		}
		for i, n := range Repair(numbers) {
			if n != numbers[i] {
				h.pods[at[i]].is.N = n
				h.repairs++
			}
		}
	}
}

// live has 400 things happen.
func (h *history) live(repaired bool) {
	for step := 1; step <= 400; step++ {
		h.comeBack(step)
		switch what := h.random.IntN(20); {
		case what < 9:
			h.place(min(1+h.random.IntN(20), 120-len(h.pods)))
		case what < 17:
			if repaired {
				h.repair()
			}
			h.remove(min(1+h.random.IntN(20), len(h.pods)))
		case what < 19:
			h.lose(step)
		default:
			h.roll()
		}
	}
}

// 200 histories of scale, loss and rollout, with costs that are repaired and without: with them each scale-down leaves zones as even as it can, for
// as many writes as pods were lost and not replaced in their zone, and no more.
func TestHistoriesOnNodesEndEven(t *testing.T) {
	for name, histories := range map[string]uint64{"without repair": 50, "with repair": 200} {
		var sum history
		repaired := histories == 200
		for i := range histories {
			h := newHistory(placementtest.Seed() + i)
			h.live(repaired)
			sum.downs, sum.uneven, sum.gaps, sum.repairs = sum.downs+h.downs, sum.uneven+h.uneven, sum.gaps+h.gaps, sum.repairs+h.repairs
			if repaired && h.uneven > 0 {
				t.Errorf("history %d: %d of %d scale-downs were uneven", i, h.uneven, h.downs)
			}
			if h.repairs > h.gaps {
				t.Errorf("history %d: %d repairs for %d gaps", i, h.repairs, h.gaps)
			}
		}
		t.Logf("%s: %d of %d scale-downs were uneven; %d repairs for %d gaps", name, sum.uneven, sum.downs, sum.repairs, sum.gaps)
	}
}
