// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// CheckPromise says how a placed batch falls short of what spreading promises, nil
// if it does not. It does not know in which order pods are to be placed: it tries
// every placement that the room allows, so keep it to a few nodes and pods. room is
// how many pods of the batch the filters allow on a node, k the pods that were asked for.
//
// The promise: as many of the k pods are placed as there is room for, and no
// division of them among the branches of the first level is more even than theirs;
// inside each of these branches, no division of the pods that the branch got is
// more even at the second level; and so on, last over the nodes of each leaf.
//
// More even: think of each pod as lying on those below it in its branch, the n-th of a branch
// of weight w at height (2n-1)/w. The first of x new pods in a branch with c pods lies at
// (2c+1)/w, the last at (2(c+x)-1)/w. Of two divisions of the same pods among the same branches that one
// is more even whose heights, sorted from the highest, are the lower at the first
// difference. Where all weights are equal, this says just that the final counts
// of the branches, sorted from the highest, are lower at the first difference.
// Where they are not, it leaves equal what final counts would tell apart by the size
// of a branch's last step: a first pod at weight 1 and a second pod at weight 3 both
// end at height 1.
//
// So a level is judged inside each branch of the level before, with the pods this
// branch has in fact got: which of two equally even divisions a level takes is for
// its tie-break to say, and not for deeper levels, however uneven they come out.
//
// Outside of it are levels that pack, which are passed over though what lies below
// them is not, and unready nodes, soft ones and those with failures, of which there must be none:
// these put something else before evenness. Pick alone speaks for both.
func CheckPromise(levels []level.Level, nodes []placement.Node, k int, room func(node string) int, placed []string) error {
	in := judge(levels, placement.Faults{}, nodes, placement.Usage{}, func(name string) bool { return room(name) > 0 })
	p := promise{got: make(map[string]int), room: room}
	for _, name := range placed {
		p.got[name]++
	}
	found, space := 0, 0
	for _, c := range in {
		if c.Failures > 0 || c.Unforgiven > 0 || c.Unready || c.Soft {
			return fmt.Errorf("node %q has failures, is unready or soft: the promise does not speak of such", c.Name)
		}
		if p.got[c.Name] > room(c.Name) {
			return fmt.Errorf("node %q has room for %d pods and got %d", c.Name, room(c.Name), p.got[c.Name])
		}
		found += p.got[c.Name]
		space += room(c.Name)
	}
	if found != len(placed) {
		return fmt.Errorf("%d of %d pods are on nodes that do not exist or are left out: %q", len(placed)-found, len(placed), placed)
	}
	if want := min(k, space); found != want {
		return fmt.Errorf("%d of %d pods were placed: there was room for %d", found, k, want)
	}
	return p.check("all nodes", in, forks(levels))
}

type promise struct {
	got  map[string]int
	room func(node string) int
}

// check judges the division of in, and then those of its branches.
func (p promise) check(where string, in []candidate, fs []fork) error {
	if len(fs) == 0 {
		var stacks []stack
		for _, c := range in {
			stacks = append(stacks, p.stack(c.Name, c.Tally.Revision, 1, c))
		}
		return compareAll(where, stacks)
	}
	if !fs[0].applies(in) {
		return p.check(where, in, fs[1:])
	}
	branches := fs[0].branches(in)
	if fs[0].level.Strategy == level.Spread {
		var stacks []stack
		for _, b := range branches {
			s := p.stack(b.value, b.revision(), b.weight, b.nodes...)
			if b.lastResort {
				s.weight = 0
			}
			stacks = append(stacks, s)
		}
		if err := compareAll(where, stacks); err != nil {
			return err
		}
	}
	for _, b := range branches {
		if err := p.check(fmt.Sprintf("%s, %s %q", where, fs[0].level.Property, b.value), b.nodes, fs[1:]); err != nil {
			return err
		}
	}
	return nil
}

// stack is a branch or a node on which new pods are put. One that is the last resort has weight 0: every
// pod on it lies higher than any other.
type stack struct {
	name          string
	count, weight int64
	room, got     int
}

func (p promise) stack(name string, count, weight int64, nodes ...candidate) stack {
	s := stack{name: name, count: count, weight: weight}
	for _, c := range nodes {
		s.room += max(0, p.room(c.Name))
		s.got += p.got[c.Name]
	}
	return s
}

// compareAll looks for a division of the pods that is more even than the one there is.
func compareAll(where string, stacks []stack) error {
	actual := make([]int, len(stacks))
	pods := 0
	for i, s := range stacks {
		actual[i] = s.got
		pods += s.got
	}
	is := heights(stacks, actual)
	var better []int
	divide(stacks, pods, nil, func(x []int) bool {
		if compareHeights(heights(stacks, x), is) < 0 {
			better = slices.Clone(x)
		}
		return better == nil
	})
	if better == nil {
		return nil
	}
	return fmt.Errorf("in %s: %s is more even than %s", where, describe(stacks, better), describe(stacks, actual))
}

// divide calls f with every way to put pods on the stacks that the room allows,
// until f returns false. x is what the stacks before this one got.
func divide(stacks []stack, pods int, x []int, f func(x []int) bool) bool {
	if len(x) == len(stacks) {
		return pods > 0 || f(x)
	}
	for n := 0; n <= min(pods, stacks[len(x)].room); n++ {
		if !divide(stacks, pods-n, append(x, n), f) {
			return false
		}
	}
	return true
}

// height is where the n-th pod of a branch lies: (2n-1) / weight.
type height struct{ n, weight int64 }

func (h height) compare(o height) int { return cmp.Compare((2*h.n-1)*o.weight, (2*o.n-1)*h.weight) }

// heights returns where each of the new pods lies, highest first.
func heights(stacks []stack, x []int) []height {
	var hs []height
	for i, s := range stacks {
		for n := range x[i] {
			hs = append(hs, height{s.count + int64(n) + 1, s.weight})
		}
	}
	slices.SortFunc(hs, func(a, b height) int { return b.compare(a) })
	return hs
}

func compareHeights(a, b []height) int { return slices.CompareFunc(a, b, height.compare) }

func describe(stacks []stack, x []int) string {
	parts := make([]string, len(stacks))
	for i, s := range stacks {
		parts[i] = fmt.Sprintf("%s %d+%d", s.name, s.count, x[i])
	}
	return strings.Join(parts, ", ")
}
