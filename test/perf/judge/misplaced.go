// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// NodeLevel is the name of the last level, the nodes.
const NodeLevel = "node"

// Misplaced is how many pods a level has in the wrong place.
type Misplaced struct {
	Level string `json:"level"`
	Pods  int    `json:"pods"`
}

// CountMisplaced says for each level, and for the nodes below the last, how many pods
// would have to move for it to be as even as it can be. A level is judged
// inside each branch of the one above, by the pods that this branch has: a pod in the
// wrong zone is counted once, for the zone. Levels are those of a spread without weights.
func CountMisplaced(levels []evenness.Level, nodes []evenness.Node) []Misplaced {
	counts := make([]Misplaced, 0, len(levels)+1)
	for _, level := range levels {
		counts = append(counts, Misplaced{Level: level.Name})
	}
	counts = append(counts, Misplaced{Level: NodeLevel})
	root := evenness.Grow(levels, nodes)
	addMisplaced(root, counts)
	counts[0].Pods += overflow(root)
	return counts
}

func addMisplaced(b *evenness.Branch, counts []Misplaced) {
	if len(b.Children) == 0 {
		return
	}
	counts[0].Pods += moves(b) - overflow(b)
	for _, child := range b.Children {
		addMisplaced(child, counts[1:])
	}
}

// overflow is how many pods a branch has beyond its room. They are in the wrong place
// wherever in it they are, which was counted for the branch itself.
func overflow(b *evenness.Branch) int {
	return max(0, b.Count-sumStanding(b, evenness.Unlimited))
}

// moves is the least number of pods that have to go to another child for the children
// to stand as water does: at one level, but for those that have no room and
// those whose fixed pods stand higher. What does not make up a whole level lies on any
// of the children that could take it.
func moves(b *evenness.Branch) int {
	height, filled := waterLevel(b)
	rest := b.Count - filled
	surplus, onTop := 0, 0
	for _, c := range b.Children {
		target := standing(c, height)
		if c.Count > target {
			surplus += c.Count - target
			if standing(c, height+1) > target {
				onTop++
			}
		}
	}
	return surplus - min(rest, onTop)
}

// waterLevel is the greatest level to which the pods of the branch fill its children,
// and how many pods that takes. It is found by halving: it lies between none and all.
func waterLevel(b *evenness.Branch) (height, filled int) {
	low, high := 0, b.Count
	for low < high {
		middle := (low + high + 1) / 2
		if sumStanding(b, middle) <= b.Count {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, sumStanding(b, low)
}

func sumStanding(b *evenness.Branch, height int) int {
	sum := 0
	for _, c := range b.Children {
		sum += standing(c, height)
	}
	return sum
}

func standing(b *evenness.Branch, height int) int {
	return max(b.Fixed, min(height, b.Room))
}
