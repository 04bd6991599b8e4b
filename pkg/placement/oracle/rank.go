// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// BestClass returns the nodes that Pick might return if nodes and values had other
// names, in byte order: at each fork every branch that nothing but its value tells
// from the first, and in each leaf so reached every node that nothing but its name
// tells from the first.
func BestClass(levels []level.Level, rule placement.Faults, nodes []placement.Node, request placement.Usage, fits placement.Fits) []string {
	in := judge(levels, rule, nodes, request, fits)
	if countFeasible(in) == 0 {
		return nil
	}
	reached := [][]candidate{in}
	for _, f := range forks(levels) {
		var next [][]candidate
		for _, in := range reached {
			if !f.decides(in) {
				next = append(next, in)
				continue
			}
			offering := f.offering(in)
			first := slices.MinFunc(offering, f.before)
			for _, b := range offering {
				renamed := b
				renamed.value = first.value
				if f.before(first, renamed) == 0 {
					next = append(next, b.nodes)
				}
			}
		}
		reached = next
	}
	var best []string
	for _, in := range reached {
		leaf := onlyFeasible(in)
		first := slices.MinFunc(leaf, nodeBefore)
		for _, c := range leaf {
			renamed := c
			renamed.Name = first.Name
			if nodeBefore(first, renamed) == 0 {
				best = append(best, c.Name)
			}
		}
	}
	slices.Sort(best)
	return best
}
