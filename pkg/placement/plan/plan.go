// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan finds which pods of one revision should move for it to be even: one at a time, each from where it stands highest to
// where the tree would place it.
//
// A move is planned only if it makes the pods that are misplaced fewer, by level: at the first level where their number changes, it is
// lower. So a plan ends, and no two plans fight: none can go back to what was before.
package plan

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// Move is one pod from a node to another.
type Move struct{ From, To string }

// one is a pod of the revision.
var one = placement.Tally{Revision: 1, Workload: 1, All: 1}

// Next returns the move that should be made first, and makes it in the tree. It is false, and the tree is as before, where none
// makes it more even. The filters are asked about all nodes that they have not been asked about.
func Next(t *simulation.Tree, fits placement.Fits) (Move, bool) {
	t.Rank(fits)
	before := t.Misplaced()
	from, ok := t.Worst()
	if !ok {
		return Move{}, false
	}
	t.Add(from, placement.Tally{}.Sub(one))
	to, ok := t.Next(fits)
	if !ok {
		t.Add(from, one)
		return Move{}, false
	}
	t.Add(to, one)
	t.Rank(fits)
	if to == from || slices.Compare(t.Misplaced(), before) >= 0 {
		t.Add(to, placement.Tally{}.Sub(one))
		t.Add(from, one)
		return Move{}, false
	}
	return Move{from, to}, true
}

// Instead returns the move with which a pod of another node goes in place of one that Next has returned, where that pod must stay, and makes it
// in the tree: the first of the others that makes it more even than it was before Next, by what was misplaced then. It is false, and the tree is as
// before Next, where none does. Each of the others must have a pod of the revision.
func Instead(t *simulation.Tree, move Move, before []int64, others []string, fits placement.Fits) (Move, bool) {
	t.Add(move.From, one)
	for _, from := range others {
		t.Add(from, placement.Tally{}.Sub(one))
		t.Rank(fits)
		if from != move.To && slices.Compare(t.Misplaced(), before) < 0 {
			return Move{from, move.To}, true
		}
		t.Add(from, one)
	}
	t.Add(move.To, placement.Tally{}.Sub(one))
	return Move{}, false
}
