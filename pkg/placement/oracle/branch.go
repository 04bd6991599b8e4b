// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// fork is one division of nodes into branches. A level is one fork, or two if it
// has a weight for level.Others: the first is over the listed values and "*", the
// second spreads the nodes of "*" evenly over their values, and does nothing
// to those of a listed value.
type fork struct {
	level  level.Level
	index  int  // of the level
	within bool // the second fork of a level with Others
	next   []fork
}

// forks returns the divisions that the levels make, first level first.
func forks(levels []level.Level) []fork {
	var fs []fork
	for i, l := range levels {
		fs = append(fs, fork{level: l, index: i})
		if hasOthers(l) {
			fs = append(fs, fork{level: l, index: i, within: true})
		}
	}
	for i := range fs {
		fs[i].next = fs[i+1:]
	}
	return fs
}

// branch is the nodes of one value.
type branch struct {
	value  string
	weight int64
	// lastResort: of nodes without the property, at a level that puts them last.
	lastResort bool
	nodes      []candidate
	below      []fork // those still to come
}

// applies is false for the second fork of a level where the first has led to a
// listed value. All nodes given must be of one branch of the first.
func (f fork) applies(in []candidate) bool {
	return !f.within || !f.isLastResort(in[0]) && !isListed(f.level, in[0].Values[f.index].Text)
}

// decides is false as well for a last fork that spreads evenly over one node each, none of which comes last:
// its branches are compared as the nodes that they are.
func (f fork) decides(in []candidate) bool {
	last := f.level.Strategy == level.Spread && (f.within || len(f.level.Weights) == 0 && f.level.Share == "") && len(f.next) == 0
	return f.applies(in) && (!last || len(f.branches(in)) < len(in) || slices.ContainsFunc(in, f.isLastResort))
}

// branches divides nodes, in the order in which their values first occur.
func (f fork) branches(in []candidate) []branch {
	var bs []branch
	for _, c := range in {
		value, weight := f.branchOf(c)
		last := f.isLastResort(c)
		i := slices.IndexFunc(bs, func(b branch) bool { return b.value == value && b.lastResort == last })
		if i < 0 {
			i = len(bs)
			bs = append(bs, branch{value: value, weight: weight, lastResort: last, below: f.next})
		}
		bs[i].nodes = append(bs[i].nodes, c)
	}
	if f.level.Share == level.Allocatable && len(bs) > 0 {
		f.shareByAllocatable(bs)
	}
	return bs
}

// shareByAllocatable has branches weigh what their nodes have of CPU, in parts per million of the largest.
func (f fork) shareByAllocatable(bs []branch) {
	cpu := func(b branch) (n int64) {
		for _, c := range b.nodes {
			n += c.Usage.CPU.Allocatable
		}
		if f.level.Property.IsHost() {
			return placement.Usage{CPU: placement.Amount{Allocatable: n}}.Size().CPU
		}
		return n
	}
	most := cpu(slices.MaxFunc(bs, func(a, b branch) int { return cmp.Compare(cpu(a), cpu(b)) }))
	for i := range bs {
		if most > 0 {
			bs[i].weight = max(1, cpu(bs[i])*level.MaxShare/most)
		}
	}
}

// isLastResort reports that a node lacks the property of a level that puts such nodes last.
func (f fork) isLastResort(c candidate) bool {
	return f.level.NodesWithoutKey == level.LastResort && c.Values[f.index].Missing
}

// branchOf returns the name and the weight of a node's branch. A node without the
// property is in the branch "", or in one of its own at a level that puts it last: levels that leave it
// out have done so before.
func (f fork) branchOf(c candidate) (value string, weight int64) {
	value = c.Values[f.index].Text
	switch {
	case f.within || f.isLastResort(c):
		return value, 1
	case isListed(f.level, value):
		return value, weightOf(f.level, value)
	case hasOthers(f.level):
		return level.Others, weightOf(f.level, level.Others)
	default:
		return value, 1
	}
}

// offering returns the branches that have a feasible node.
func (f fork) offering(in []candidate) []branch {
	return slices.DeleteFunc(f.branches(in), func(b branch) bool { return countFeasible(b.nodes) == 0 })
}

// before orders branches, the one that gets the next pod first:
//
//  1. the best standing; at a level over host names, those that are not a soft node; then those that are
//     not the last resort;
//  2. the least (2 * pods of the revision + 1) / weight, which is Sainte-Laguë's rule, or
//     where the level packs the most pods of the revision;
//  3. likewise with the pods of the workload: (2 * pods + 1) / weight, or the most;
//  4. the fewest unforgiven failures;
//  5. at a level over host names the node that ends last;
//  6. the lowest load, the larger share of CPU or memory that is requested of all its nodes; at a level over host
//     names with the pod that is placed;
//  7. the value, byte by byte.
func (f fork) before(a, b branch) int {
	if d := a.standing() - b.standing(); d != 0 {
		return d
	}
	if f.level.Property.IsHost() {
		if d := sign(oneIf(a.soft()) - oneIf(b.soft())); d != 0 {
			return d
		}
	}
	if d := sign(oneIf(a.lastResort) - oneIf(b.lastResort)); d != 0 {
		return d
	}
	if c := f.compareCounts(a, b); c != 0 {
		return c
	}
	if f.level.Property.IsHost() {
		if c := cmp.Compare(b.lives(), a.lives()); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(f.load(a), f.load(b)); c != 0 {
		return c
	}
	return strings.Compare(a.value, b.value)
}

// soft reports whether a branch is one node, which is soft.
func (b branch) soft() bool { return len(b.nodes) == 1 && b.nodes[0].Soft }

// lives is the hour in which the one node of a branch ends. Several nodes have no end together.
func (b branch) lives() int64 {
	if len(b.nodes) != 1 {
		return math.MaxInt64
	}
	return b.nodes[0].lives()
}

// load is that of all nodes of a branch together, whether a pod fits on them or not; at a level over host names with
// the pod that is placed.
func (f fork) load(b branch) uint64 {
	var u placement.Usage
	for _, c := range b.nodes {
		u = u.Add(c.Usage)
	}
	if f.level.Property.IsHost() {
		return u.LoadAfter(b.nodes[0].request)
	}
	return uint64(u.Load())
}

// compareCounts is points 2 to 4 of before.
func (f fork) compareCounts(a, b branch) int {
	if c := f.comparePods(a, b); c != 0 {
		return c
	}
	return sign(a.unforgiven() - b.unforgiven())
}

// comparePods is points 2 and 3 of before.
func (f fork) comparePods(a, b branch) int {
	if f.level.Strategy == level.Pack {
		if c := sign(b.revision() - a.revision()); c != 0 {
			return c
		}
		return sign(b.workload() - a.workload())
	}
	if c := a.heightAfter(a.revision()).Cmp(b.heightAfter(b.revision())); c != 0 {
		return c
	}
	// Weighted like the revision. The plain number would give every tie between
	// 7/70 and 3/30 to the smaller share, whose count is always the lower one.
	return a.heightAfter(a.workload()).Cmp(b.heightAfter(b.workload()))
}

// heightAfter is where one pod more than pods lies in a branch.
func (b branch) heightAfter(pods int64) *big.Rat { return big.NewRat(2*pods+1, b.weight) }

// revision and workload count the pods of a branch: on feasible nodes and others,
// but not on unready ones.
func (b branch) revision() (n int64) {
	for _, c := range b.nodes {
		if !c.Unready {
			n += c.Tally.Revision
		}
	}
	return n
}

func (b branch) workload() (n int64) {
	for _, c := range b.nodes {
		if !c.Unready {
			n += c.Tally.Workload
		}
	}
	return n
}

// weightOf looks a weight up by scanning, 0 if there is none: the level's own
// look-up is among the things under test.
func weightOf(l level.Level, value string) int64 {
	for _, w := range l.Weights {
		if w.Value == value {
			return w.Share
		}
	}
	return 0
}

// isListed reports that a value of a node has a weight of its own. (A node whose
// value is the text "*" cannot be: it is no label value.)
func isListed(l level.Level, value string) bool { return weightOf(l, value) > 0 }

func hasOthers(l level.Level) bool { return weightOf(l, level.Others) > 0 }
