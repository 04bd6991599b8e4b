// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Answered is what the filters have said of a node so far: fits is only to be read
// where known is true.
type Answered func(node string) (fits, known bool)

// MayAsk returns the nodes about which a lazy decision has a reason to ask the
// filters next, in no order that means anything. To ask about any other node is work
// that cannot change the decision. The reasons are two:
//
//   - the node would be picked if all nodes not asked about did fit;
//   - it hangs under a branch on the way to that node which differs from a sibling
//     in nothing but the number of nodes that fit, and this number, as far as it is
//     certain, is no larger than what the sibling may come to.
func MayAsk(levels []level.Level, rule placement.Faults, nodes []placement.Node, answered Answered) []string {
	in := judge(levels, rule, nodes, func(name string) bool {
		fits, known := answered(name)
		return fits || !known
	})
	if countFeasible(in) == 0 {
		return nil
	}
	var may []string
	for _, f := range forks(levels) {
		if !f.applies(in) {
			continue
		}
		branches := f.offering(in)
		best := slices.MinFunc(branches, f.before)
		open := notAsked(best.nodes, answered)
		certain := countFeasible(best.nodes) - len(open)
		if slices.ContainsFunc(branches, func(b branch) bool {
			return b.value != best.value && b.standing() == best.standing() && f.compareCounts(b, best) == 0 && countFeasible(b.nodes) >= certain
		}) {
			may = append(may, open...)
		}
		in = best.nodes
	}
	return append(may, slices.MinFunc(onlyFeasible(in), nodeBefore).Name)
}

func notAsked(in []candidate, answered Answered) []string {
	var names []string
	for _, c := range in {
		if _, known := answered(c.Name); !known {
			names = append(names, c.Name)
		}
	}
	return names
}
