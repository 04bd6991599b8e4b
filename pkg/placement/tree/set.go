// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"math/bits"
	"slices"
)

// set is a set of small numbers, a bit each, in words of 64 of them: those words that
// are not empty, in order. A set of few takes little room however large the numbers are,
// and a set of many is as good as an array of bits.
type set []word

type word struct {
	at   int32 // the numbers from 64*at
	bits uint64
}

func (s set) find(at int32) (int, bool) {
	// Most sets have a few words, and most changes are at the end of the longer ones.
	if last := len(s) - 1; last >= 0 && s[last].at <= at {
		if s[last].at == at {
			return last, true
		}
		return last + 1, false
	}
	low, high := 0, len(s)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if s[middle].at < at {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(s) && s[low].at == at
}

func (s *set) add(i int32) {
	at, found := s.find(i / 64)
	if !found {
		*s = slices.Insert(*s, at, word{at: i / 64})
	}
	(*s)[at].bits |= 1 << (i % 64)
}

func (s *set) remove(i int32) {
	at, found := s.find(i / 64)
	if !found {
		return
	}
	if (*s)[at].bits &^= 1 << (i % 64); (*s)[at].bits == 0 {
		*s = slices.Delete(*s, at, at+1)
	}
}

// has64 returns the 64 numbers from 64*at that are in the set.
func (s set) has64(at int32) uint64 {
	if i, found := s.find(at); found {
		return s[i].bits
	}
	return 0
}

// each calls f with the numbers that have a bit, from the word at.
func each(at int32, b uint64, f func(i int32)) {
	for ; b != 0; b &= b - 1 {
		f(at*64 + int32(bits.TrailingZeros64(b)))
	}
}
