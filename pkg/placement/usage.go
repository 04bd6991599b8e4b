// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"math"
	"math/bits"
)

// Usage is the requested and the allocatable CPU and memory of a node or a branch. The usage of a branch is the sum of those of its nodes.
// As the request of a pod it has nothing allocatable.
type Usage struct {
	CPU, Memory Amount
}

// Amount is one resource, in a unit that is the same for all that are added.
type Amount struct {
	Requested, Allocatable int64
}

// Add returns the sum of two usages.
func (u Usage) Add(o Usage) Usage {
	return Usage{u.CPU.add(o.CPU), u.Memory.add(o.Memory)}
}

// Sub returns the usage less another.
func (u Usage) Sub(o Usage) Usage {
	return Usage{u.CPU.sub(o.CPU), u.Memory.sub(o.Memory)}
}

// Load is the larger share of CPU or memory that is requested, in parts per million:
// one number for each node and branch. It breaks ties, and promises nothing. A resource
// of which there is nothing has no share.
func (u Usage) Load() uint32 { return max(u.CPU.load(), u.Memory.load()) }

// LoadAfter is Load plus the share that a request takes of a node of this Size. It is an estimate: the two shares may
// be of different resources, and Size is rounded. Of two nodes with the same load, the one of the larger Size comes
// first.
func (u Usage) LoadAfter(request Usage) uint64 {
	return uint64(u.Load()) + uint64(u.Size().Share(request))
}

// Size is how much CPU and memory a node has, rounded down by less than an eighth. Machines of one kind differ by less
// than that, so they have few different sizes.
type Size struct{ CPU, Memory int64 }

// Compare orders sizes.
func (s Size) Compare(o Size) int {
	return cmp.Or(cmp.Compare(s.CPU, o.CPU), cmp.Compare(s.Memory, o.Memory))
}

// Size returns that of what is allocatable.
func (u Usage) Size() Size { return Size{rounded(u.CPU.Allocatable), rounded(u.Memory.Allocatable)} }

// Share is the larger share of CPU or memory that a request takes of a node of a size, in parts per million.
func (s Size) Share(request Usage) uint32 {
	return max(Amount{request.CPU.Requested, s.CPU}.load(), Amount{request.Memory.Requested, s.Memory}.load())
}

// rounded keeps the four highest bits.
func rounded(amount int64) int64 {
	below := max(0, bits.Len64(uint64(max(0, amount)))-4)
	return max(0, amount) >> below << below
}

func (a Amount) add(o Amount) Amount {
	return Amount{a.Requested + o.Requested, a.Allocatable + o.Allocatable}
}

func (a Amount) sub(o Amount) Amount {
	return Amount{a.Requested - o.Requested, a.Allocatable - o.Allocatable}
}

// load returns Requested in parts per million of Allocatable, rounded down. It is 0 if either of them is not positive,
// and math.MaxUint32 if the result is larger than that. It multiplies in 128 bits, because a million times the bytes of
// a large branch does not fit into 64. A float could give two branches with the same share different loads.
func (a Amount) load() uint32 {
	if a.Requested <= 0 || a.Allocatable <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(a.Requested), 1_000_000)
	if high >= uint64(a.Allocatable) {
		return math.MaxUint32
	}
	load, _ := bits.Div64(high, low, uint64(a.Allocatable))
	return uint32(min(load, math.MaxUint32))
}
