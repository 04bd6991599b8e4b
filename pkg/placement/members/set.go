// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of numbers from 0, a bit each. The first 64 are in one word, and most groups have no more. The others are in
// words that are in order and never zero, which Empty and Equal rely on. So a set of few numbers is small however large these are,
// and a set of many is as good as an array of bits.
type Set struct {
	first uint64
	more  []word
}

// A block is wordsPerBlock words, and has blockSize numbers.
const (
	wordsPerBlock = 64
	blockSize     = 64 * wordsPerBlock
)

// word is the bits of the numbers from 64*at to 64*at+63.
type word struct {
	at   int32
	bits uint64
}

// Empty reports that no number is in the set.
func (s *Set) Empty() bool { return s.first == 0 && len(s.more) == 0 }

// Words returns the words that are not zero, in order. The set must not be changed meanwhile.
func (s *Set) Words() iter.Seq2[int32, uint64] {
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

// after returns the index of the first word of s.more in a later block than that of the word at an index. Where
// many are set, it is where it would be if all were.
func (s *Set) after(i int) int {
	next := (s.more[i].at/wordsPerBlock + 1) * wordsPerBlock
	if j := i + int(next-s.more[i].at); j < len(s.more) && s.more[j].at == next {
		return j
	}
	rest, _ := slices.BinarySearchFunc(s.more[i:], next, func(w word, at int32) int { return cmp.Compare(w.at, at) })
	return i + rest
}

func (s *Set) find(at int32) (int, bool) {
	// Sets are filled in ascending order.
	if last := len(s.more) - 1; last >= 0 && s.more[last].at <= at {
		if s.more[last].at == at {
			return last, true
		}
		return last + 1, false
	}
	return slices.BinarySearchFunc(s.more, at, func(w word, at int32) int { return cmp.Compare(w.at, at) })
}

// Add adds a number from 0, and reports whether it was not there.
func (s *Set) Add(i int32) bool {
	bit := uint64(1) << (i % 64)
	if s.has64(i/64)&bit != 0 {
		return false
	}
	if i < 64 {
		s.first |= bit
		return true
	}
	at, found := s.find(i / 64)
	if !found {
		s.more = slices.Insert(s.more, at, word{at: i / 64})
	}
	s.more[at].bits |= bit
	return true
}

// Remove removes a number from 0, and reports whether it was there.
func (s *Set) Remove(i int32) bool {
	bit := uint64(1) << (i % 64)
	if s.has64(i/64)&bit == 0 {
		return false
	}
	if i < 64 {
		s.first &^= bit
		return true
	}
	at, _ := s.find(i / 64)
	if s.more[at].bits &^= bit; s.more[at].bits == 0 {
		s.more = slices.Delete(s.more, at, at+1)
	}
	return true
}

// has64 returns the bits of the numbers from 64*at to 64*at+63.
func (s *Set) has64(at int32) uint64 {
	if at == 0 {
		return s.first
	}
	if i, found := s.find(at); found {
		return s.more[i].bits
	}
	return 0
}

// Equal reports that two sets are the same.
func (s *Set) Equal(o *Set) bool { return s.first == o.first && slices.Equal(s.more, o.more) }

// Each calls f with the numbers that have a bit, from the word at.
func Each(at int32, b uint64, f func(i int32)) {
	for ; b != 0; b &= b - 1 {
		f(at*64 + int32(bits.TrailingZeros64(b)))
	}
}

// Within leaves those of the numbers whose bits are set in words that are in the set.
func (s *Set) Within(words []uint64) {
	words[0] &= s.first
	at := 1
	for _, w := range s.more {
		clear(words[at:w.at])
		words[w.at] &= w.bits
		at = int(w.at) + 1
	}
	clear(words[at:])
}

// Counted is a Set that knows which blocks are full, so that a search can pass them over. It is changed by its own methods only: those of
// the Set inside do not count.
type Counted struct {
	Set
	// blocks has how many numbers of each block are in the set. It is nil until one from 64 on is added.
	blocks []uint16
}

// Add adds a number.
func (s *Counted) Add(i int32) {
	if s.Set.Add(i) {
		s.count(i, +1)
	}
}

// Remove removes a number.
func (s *Counted) Remove(i int32) {
	if s.Set.Remove(i) {
		s.count(i, -1)
	}
}

func (s *Counted) count(i int32, by int) {
	if s.blocks == nil {
		if i < 64 {
			return
		}
		s.blocks = append(s.blocks, uint16(bits.OnesCount64(s.first)))
	}
	for int(i/blockSize) >= len(s.blocks) {
		s.blocks = append(s.blocks, 0)
	}
	s.blocks[i/blockSize] += uint16(by)
}

// full reports that all numbers of a block are in the set, of so many that there are in all.
func (s *Counted) full(block int32, numbers int) bool {
	if int(block) >= len(s.blocks) {
		return block == 0 && bits.OnesCount64(s.first) == numbers
	}
	return int(s.blocks[block]) == min(blockSize, numbers-int(block)*blockSize)
}
