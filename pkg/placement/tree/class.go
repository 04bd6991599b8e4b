// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement/members"
)

// key is what a member of a group is ordered by, as far as one tally has it: less is
// better. It has no load, which moves with every placement of anybody; see members.Loads.
//
// All numbers of a tally are of 32 bits: no cluster has two billion pods, and what a
// placement costs among thousands of tallies is mostly waiting for their memory.
type key struct {
	health health
	// soft is that of a node, see placement.Node. No tally knows it: what is soft differs from pod to pod.
	soft bool
	// failures are those of a faulty node, 0 for a branch.
	failures           int32
	revision, workload int32
	share              int32 // 0 for a last resort
	unforgiven         int32
}

// compare orders the keys of two members of one group. Equal keys tie.
func (a *key) compare(b *key, packs bool) int {
	if a.health != b.health {
		// A broken zone must not go on swallowing pods because it is the emptiest.
		return cmp.Compare(a.health, b.health)
	}
	if a.failures != b.failures {
		return cmp.Compare(a.failures, b.failures)
	}
	if a.soft != b.soft {
		if a.soft {
			return 1
		}
		return -1
	}
	if (a.share == 0) != (b.share == 0) {
		return cmp.Compare(b.share, a.share)
	}
	if c := comparePods(a.revision, a.share, b.revision, b.share, packs); c != 0 {
		return c
	}
	if c := comparePods(a.workload, a.share, b.workload, b.share, packs); c != 0 {
		return c
	}
	return cmp.Compare(a.unforgiven, b.unforgiven)
}

// comparePods orders two members by (2 * count + 1) / share, the least first: Sainte-Laguë's rule.
// With it, each branch is nearest to its exact share at every count: 70/20/10 of eight pods
// are 5/2/1, for 5.6/1.6/0.8. With (count + 1) / share they were 7/1/0. Equal shares come out the same by both. Multiplied
// by both shares it needs no fractions, and cannot overflow: a count is below 2^31 and a share
// below 2^20. Where the level packs, the one with more pods comes first.
func comparePods(aCount, aShare, bCount, bShare int32, packs bool) int {
	if packs {
		return cmp.Compare(bCount, aCount)
	}
	return cmp.Compare((2*int64(aCount)+1)*int64(bShare), (2*int64(bCount)+1)*int64(aShare))
}

// class is the members of a group that tie, but for their loads.
type class struct {
	key     key
	members members.Set
}

// classes are in the order of their keys.
type classes []class

func (c classes) find(k *key, packs bool) (at int, found bool) {
	return slices.BinarySearchFunc(c, k, func(c class, k *key) int { return c.key.compare(k, packs) })
}
