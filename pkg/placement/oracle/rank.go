// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Ranked is a node that fits, and its class.
type Ranked struct {
	Name  string
	Class int
}

// Rank returns all nodes that fit, best first, each branch in one piece: all that fit
// of the best branch before any of the next. Its first node is Pick's. Nodes are of
// one class if nothing but names (their own and those of values) tells them apart:
// not their tallies, failures or readiness, nor the numbers of any branch they hang
// on. Classes are numbered from 0 in the order of their first nodes.
func Rank(levels []level.Level, nodes []placement.Node, fits placement.Fits) []Ranked {
	var ranked []Ranked
	var paths []string // by class
	var walk func(in []candidate, fs []fork, path string)
	walk = func(in []candidate, fs []fork, path string) {
		if len(fs) == 0 {
			in = onlyFeasible(in)
			slices.SortFunc(in, nodeBefore)
			for _, c := range in {
				own := path + fmt.Sprint(" node ", c.Unready, c.Failures, c.Tally)
				class := slices.Index(paths, own)
				if class < 0 {
					class = len(paths)
					paths = append(paths, own)
				}
				ranked = append(ranked, Ranked{c.Name, class})
			}
			return
		}
		if !fs[0].applies(in) {
			walk(in, fs[1:], path)
			return
		}
		bs := fs[0].offering(in)
		slices.SortFunc(bs, fs[0].before)
		for _, b := range bs {
			walk(b.nodes, fs[1:], path+b.numbers(fs[0]))
		}
	}
	if in := judge(levels, nodes, fits); len(in) > 0 {
		walk(in, forks(levels), "")
	}
	return ranked
}

// numbers is all that before compares but the value, as text.
func (b branch) numbers(f fork) string {
	return fmt.Sprint(" fork ", f.index, f.within, " ", b.healthy(), b.loadAfter(b.revision()), " ", b.loadAfter(b.workload()), " ", countFeasible(b.nodes))
}
