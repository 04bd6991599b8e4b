// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// As many pods move as in the best of all divisions that are even, and there is one.
func TestPropertyUnevenIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piles := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pile {
			return pile{rapid.Int64Range(0, 6).Draw(t, "pods"), rapid.Int64Range(1, 4).Draw(t, "share"), rapid.Bool().Draw(t, "takes")}
		}), 0, 4).Draw(t, "piles")
		if len(piles) > 0 && rapid.Bool().Draw(t, "a last resort") {
			piles[0].share, piles[0].takes = 0, false
		}
		want := leastMoves(piles)
		if got := uneven(slices.Clone(piles)); got != want {
			t.Fatalf("%d pods move, and %d are enough", got, want)
		}
	})
}

// leastMoves tries every division of the pods.
func leastMoves(piles []pile) int64 {
	total := int64(0)
	for _, p := range piles {
		total += p.pods
	}
	least := int64(math.MaxInt64)
	divide(slices.Clone(piles), piles, 0, total, func(divided []pile) {
		moves := int64(0)
		for i, p := range divided {
			moves += max(0, piles[i].pods-p.pods)
		}
		least = min(least, moves)
	})
	return least
}

// divide calls found with every division in which no pod is better off elsewhere. A
// pile that takes nothing has room for what it has.
func divide(now, piles []pile, at int, left int64, found func([]pile)) {
	if at < len(now) {
		most := left
		if !piles[at].takes {
			most = min(left, piles[at].pods)
		}
		for now[at].pods = 0; now[at].pods <= most; now[at].pods++ {
			divide(now, piles, at+1, left-now[at].pods, found)
		}
		return
	}
	if left > 0 {
		return
	}
	for i := range now {
		for j := range now {
			if room := piles[j].takes || now[j].pods < piles[j].pods; i != j && room && now[i].higher(&now[j]) {
				return
			}
		}
	}
	found(now)
}
