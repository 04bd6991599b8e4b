// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

// Strategy is how a sample is drawn.
type Strategy string

// The strategies.
const (
	// Random draws any, each at most once in one draw.
	Random Strategy = "Random"
	// RoundRobin draws those that follow the last draw, for whomever that was.
	RoundRobin Strategy = "RoundRobin"
)

// inTurn draws size of n in turn and moves the cursor on. A cursor beyond a list that has become shorter is taken
// modulo its length (vector VV3).
func inTurn(cursor *int, n, size int) []int {
	drawn := make([]int, 0, min(size, n))
	for range min(size, n) {
		at := *cursor % n
		drawn = append(drawn, at)
		*cursor = at + 1
	}
	return drawn
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
