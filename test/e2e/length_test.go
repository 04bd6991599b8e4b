// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A story that waits, or repeats what depends on chance, has two lengths: the one that its scenario says, with -whole, and one that shows
// the same in seconds.

// times is how often a story repeats what depends on chance.
func times(n int) int {
	if *wholeFlag {
		return n
	}
	return min(n, 2)
}

// lasting is how long a story lets something last.
func lasting(whole, short time.Duration) time.Duration { return sized(whole, short) }

// sized is how large a story is.
func sized[T any](whole, short T) T {
	if *wholeFlag {
		return whole
	}
	return short
}

// still fails the story unless there are so many Moves, and if another one is made for some time.
func (s *story) still(want int) {
	s.Helper()
	s.stillFor(want, lasting(10*time.Minute, 15*time.Second))
}

// stillFor is still for another time.
func (s *story) stillFor(want int, lasts time.Duration) {
	s.Helper()
	made := make(map[types.UID]bool) // those that have ended are deleted after a while
	for _, m := range s.moves() {
		made[m.UID] = true
	}
	if len(made) != want {
		s.Fatalf("there are %d Moves, want %d: %v", len(made), want, s.moves())
	}
	begun := time.Now()
	for said := begun; time.Since(begun) < lasts; time.Sleep(time.Second) {
		for _, m := range s.moves() {
			if !made[m.UID] {
				s.Fatalf("there is another Move after %s: %v", time.Since(begun).Round(time.Second), m)
			}
		}
		if time.Since(said) > time.Minute {
			said = time.Now()
			s.Logf("%s: nothing has been moved for %s of %s", s.Name(), time.Since(begun).Round(time.Second), lasts)
		}
	}
}
