// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pile

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

// As many pods move as in the best of all divisions that are even, and there is one.
func TestPropertyUnevenIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piles := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Pile {
			return Pile{rapid.Int64Range(0, 6).Draw(t, "pods"), rapid.Int64Range(1, 4).Draw(t, "share"), rapid.Bool().Draw(t, "takes")}
		}), 0, 4).Draw(t, "piles")
		if len(piles) > 0 && rapid.Bool().Draw(t, "a last resort") {
			piles[0].Share, piles[0].Takes = 0, false
		}
		want := leastMoves(piles)
		if got := Uneven(slices.Clone(piles)); got != want {
			t.Fatalf("%d pods move, and %d are enough", got, want)
		}
	})
}

// leastMoves tries every division of the pods.
func leastMoves(piles []Pile) int64 {
	total := int64(0)
	for _, p := range piles {
		total += p.Pods
	}
	least := int64(math.MaxInt64)
	divide(slices.Clone(piles), piles, 0, total, func(divided []Pile) {
		moves := int64(0)
		for i, p := range divided {
			moves += max(0, piles[i].Pods-p.Pods)
		}
		least = min(least, moves)
	})
	return least
}

// divide calls found with every division in which no pod is better off elsewhere. A pile that takes nothing has room for what it has.
func divide(now, piles []Pile, at int, left int64, found func([]Pile)) {
	if at < len(now) {
		most := left
		if !piles[at].Takes {
			most = min(left, piles[at].Pods)
		}
		for now[at].Pods = 0; now[at].Pods <= most; now[at].Pods++ {
			divide(now, piles, at+1, left-now[at].Pods, found)
		}
		return
	}
	if left > 0 {
		return
	}
	for i := range now {
		for j := range now {
			if room := piles[j].Takes || now[j].Pods < piles[j].Pods; i != j && room && now[i].higher(&now[j]) {
				return
			}
		}
	}
	found(now)
}
