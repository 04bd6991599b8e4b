// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"math/bits"
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

// A set is what a map is, however many numbers there are, and its blocks are known without looking at them.
func TestPropertySet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SampledFrom([]int{1, 63, 64, 65, 200, blockSize, blockSize + 1, 3*blockSize - 5}).Draw(t, "numbers")
		var s Counted
		want := make(map[int32]bool)
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			from := rapid.IntRange(0, numbers-1).Draw(t, "from")
			to := min(numbers, from+rapid.SampledFrom([]int{1, 2, 100, blockSize, 4 * blockSize}).Draw(t, "many"))
			isIn := rapid.Bool().Draw(t, "add")
			for i := int32(from); i < int32(to); i++ {
				if isIn {
					s.Add(i)
					want[i] = true
				} else {
					s.Remove(i)
					delete(want, i)
				}
			}
		}
		is := 0
		for at, word := range s.Words() {
			is += bits.OnesCount64(word)
			Each(at, word, func(i int32) {
				if !want[i] {
					t.Fatalf("%d is in the set", i)
				}
			})
		}
		if is != len(want) {
			t.Fatalf("%d numbers are in the set, want %d", is, len(want))
		}
		for b := range int32((numbers + blockSize - 1) / blockSize) {
			full := true
			for i := b * blockSize; i < min((b+1)*blockSize, int32(numbers)); i++ {
				full = full && want[i]
			}
			if s.full(b, numbers) != full {
				t.Fatalf("block %d of %d numbers is full: %t", b, numbers, !full)
			}
		}
		for i, w := range s.more {
			next := slices.IndexFunc(s.more, func(o word) bool { return o.at/wordsPerBlock > w.at/wordsPerBlock })
			if next < 0 {
				next = len(s.more)
			}
			if got := s.after(i); got != next {
				t.Fatalf("after word %d comes %d, want %d", i, got, next)
			}
		}
	})
}
