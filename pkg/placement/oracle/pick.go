// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Pick returns the node for one more pod, false if the filters refuse all nodes.
//
// From the first level down it takes the first of the branches (see before), and in
// the leaf the first of the nodes (see nodeBefore). Only what fits can be taken, but
// everything ready counts for its branches. A node that a level leaves out neither
// fits nor counts.
func Pick(levels []level.Level, rule placement.Faults, nodes []placement.Node, request placement.Usage, fits placement.Fits) (string, bool) {
	in := judge(levels, rule, nodes, request, fits)
	if countFeasible(in) == 0 {
		return "", false
	}
	for _, f := range forks(levels) {
		if f.decides(in) {
			in = slices.MinFunc(f.offering(in), f.before).nodes
		}
	}
	return slices.MinFunc(onlyFeasible(in), nodeBefore).Name, true
}

// Place decides k pods one after the other, each on what those before it left
// behind: every pod placed counts on its node three ways, requests what each requests, and is unproven. fits is told how many
// pods of this batch the node has got so far. The answer is shorter than k if the
// room ends. The given nodes stay as they are.
func Place(levels []level.Level, rule placement.Faults, nodes []placement.Node, k int, request placement.Usage, fits func(node string, placed int) bool) []string {
	nodes = slices.Clone(nodes)
	count := make([]int, len(nodes))
	index := func(name string) int {
		return slices.IndexFunc(nodes, func(n placement.Node) bool { return n.Name == name })
	}
	var placed []string
	for range k {
		name, ok := Pick(levels, rule, nodes, request, func(name string) bool { return fits(name, count[index(name)]) })
		if !ok {
			break
		}
		i := index(name)
		count[i]++
		nodes[i].Tally = nodes[i].Tally.Add(placement.Tally{Revision: 1, Workload: 1, All: 1})
		nodes[i].Usage = nodes[i].Usage.Add(request)
		nodes[i].Unproven++
		placed = append(placed, name)
	}
	return placed
}

// candidate is a node in play with the filters' answer, and the rule for its record.
type candidate struct {
	placement.Node
	feasible bool
	rule     placement.Faults
	request  placement.Usage // of the pod that is placed
}

// judge asks the filters about every node that no level leaves out.
func judge(levels []level.Level, rule placement.Faults, nodes []placement.Node, request placement.Usage, fits placement.Fits) []candidate {
	var in []candidate
	for _, n := range nodes {
		out := false
		for i, l := range levels {
			out = out || (l.NodesWithoutKey == level.Exclude && n.Values[i].Missing)
		}
		if !out {
			in = append(in, candidate{n, fits(n.Name), rule, request})
		}
	}
	return in
}

func onlyFeasible(in []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(in), func(c candidate) bool { return !c.feasible })
}

func countFeasible(in []candidate) int { return len(onlyFeasible(in)) }

// nodeBefore orders the nodes of a leaf: the best standing, among faulty nodes fewer
// failures, those that are not soft, then fewer pods of the revision, of the workload, fewer unforgiven
// failures, the later end, the lower load with the pod that is placed, then names.
func nodeBefore(a, b candidate) int {
	for _, d := range []int64{
		int64(a.standing()) - int64(b.standing()),
		a.failures() - b.failures(),
		oneIf(a.Soft) - oneIf(b.Soft),
		a.Tally.Revision - b.Tally.Revision,
		a.Tally.Workload - b.Tally.Workload,
		a.unforgiven() - b.unforgiven(),
		b.lives() - a.lives(),
		int64(a.Usage.LoadAfter(a.request)) - int64(b.Usage.LoadAfter(b.request)),
	} {
		if d != 0 {
			return sign(d)
		}
	}
	return strings.Compare(a.Name, b.Name)
}

// lives is the hour in which a node ends, the last that there is for one without an end.
func (c candidate) lives() int64 {
	if c.Ends == 0 {
		return math.MaxInt64
	}
	return int64(c.Ends)
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func sign(d int64) int { return big.NewInt(d).Sign() }
