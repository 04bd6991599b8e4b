// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ordinal

// Set is the numbers of the pods in a branch. Two pods may have the same: nodes are relabelled, and so go from branch to
// branch with their pods. The zero value is empty.
type Set struct {
	pods map[int32]int // how many have the number
	// below it no number is free.
	from int32
}

// Lowest returns the lowest number that no pod has. It writes to the set, so it is not safe beside another reader.
func (s *Set) Lowest() int32 {
	for s.from = max(s.from, 1); s.pods[s.from] > 0; s.from++ {
	}
	return s.from
}

// Add counts a pod with a number.
func (s *Set) Add(n int32) {
	if s.pods == nil {
		s.pods = make(map[int32]int)
	}
	s.pods[n]++
}

// Remove removes a pod with a number. Add must have been called for it before.
func (s *Set) Remove(n int32) {
	if s.pods[n]--; s.pods[n] <= 0 {
		delete(s.pods, n)
		s.from = min(s.from, n)
	}
}

// Empty reports whether the set has no pods.
func (s *Set) Empty() bool { return len(s.pods) == 0 }
