// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
)

// set is a set of small numbers, a bit each. Beside the first 64, which most groups have
// no more than, it has words that are not empty, in order: a set of few takes little room
// however large the numbers are, and a set of many is as good as an array of bits.
type set struct {
	first uint64
	more  []word
}

type word struct {
	at   int32 // the numbers from 64*at
	bits uint64
}

func (s *set) empty() bool { return s.first == 0 && len(s.more) == 0 }

// words returns the words that are not empty, in order.
func (s *set) words() iter.Seq2[int32, uint64] {
	return func(yield func(int32, uint64) bool) {
		if s.first != 0 && !yield(0, s.first) {
			return
		}
		for _, w := range s.more {
			if !yield(w.at, w.bits) {
				return
			}
		}
	}
}

func (s *set) find(at int32) (int, bool) {
	// Most changes are at the end.
	if last := len(s.more) - 1; last >= 0 && s.more[last].at <= at {
		if s.more[last].at == at {
			return last, true
		}
		return last + 1, false
	}
	return slices.BinarySearchFunc(s.more, at, func(w word, at int32) int { return cmp.Compare(w.at, at) })
}

func (s *set) add(i int32) {
	if i < 64 {
		s.first |= 1 << i
		return
	}
	at, found := s.find(i / 64)
	if !found {
		s.more = slices.Insert(s.more, at, word{at: i / 64})
	}
	s.more[at].bits |= 1 << (i % 64)
}

func (s *set) remove(i int32) {
	if i < 64 {
		s.first &^= 1 << i
		return
	}
	at, found := s.find(i / 64)
	if !found {
		return
	}
	if s.more[at].bits &^= 1 << (i % 64); s.more[at].bits == 0 {
		s.more = slices.Delete(s.more, at, at+1)
	}
}

// has64 returns the 64 numbers from 64*at that are in the set.
func (s *set) has64(at int32) uint64 {
	if at == 0 {
		return s.first
	}
	if i, found := s.find(at); found {
		return s.more[i].bits
	}
	return 0
}

func (s *set) equal(o *set) bool { return s.first == o.first && slices.Equal(s.more, o.more) }

// each calls f with the numbers that have a bit, from the word at.
func each(at int32, b uint64, f func(i int32)) {
	for ; b != 0; b &= b - 1 {
		f(at*64 + int32(bits.TrailingZeros64(b)))
	}
}
