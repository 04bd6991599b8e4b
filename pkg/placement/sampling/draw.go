// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

import "iter"

// Strategy is how a sample is drawn.
type Strategy string

// The strategies.
const (
	// Random draws any, each at most once in one draw.
	Random Strategy = "Random"
	// RoundRobin draws those that follow the last draw, for whomever that was.
	RoundRobin Strategy = "RoundRobin"
)

// inTurn draws size of n in turn, and moves the cursor on with each that is taken. A cursor beyond a list that has become shorter is
// taken modulo its length (vector VV3).
func inTurn(cursor *int, n, size int) iter.Seq[int] {
	return func(take func(int) bool) {
		for range min(size, n) {
			at := *cursor % n
			if !take(at) {
				return // its turn is the next draw's
			}
			*cursor = at + 1
		}
	}
}

// atRandom draws size of n without putting any back. It is Floyd's algorithm, which costs the size of the draw,
// however many there are to draw from.
func atRandom(intn func(n int) int, n, size int) []int {
	size = min(size, n)
	drawn, is := make([]int, 0, size), make(map[int]bool, size)
	for last := n - size; last < n; last++ {
		at := intn(last + 1)
		if is[at] {
			at = last
		}
		is[at] = true
		drawn = append(drawn, at)
	}
	return drawn
}
