// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
)

// Owner returns the member that owns a workload, "" if there is no member: the one for which the
// hash of both is highest (rendezvous hashing). So a member that goes hands on what it owned and
// nothing else, to all that stay alike, and one that comes takes as much from each.
//
// The order of members does not matter. It needs no ring and no table, and with the few members
// that there are is no slower than one.
func Owner(workload string, members []string) string {
	if len(members) == 0 {
		return ""
	}
	return slices.MaxFunc(members, func(a, b string) int {
		// Replicas that list their members in another order must agree, also where two weights are the same.
		return cmp.Or(cmp.Compare(Weight(workload, a), Weight(workload, b)), strings.Compare(a, b))
	})
}

// Weight is a hash of two names. It is the same in every process: replicas must agree.
func Weight(name, member string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	_, _ = h.Write([]byte{0}) // or "ab" and "c" would be "a" and "bc"
	_, _ = h.Write([]byte(member))
	// The last bytes hardly reach the high bits of FNV, by which weights are compared: names that
	// differ in their last digit would all have one owner. This is the finalizer of SplitMix64.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Weights returns the weights of nodes that are equals to a replica, by their names: several replicas that see the same nodes do not
// all want the same one first. Without a replica it is nil, for none.
func Weights(replica string) func(node string) uint64 {
	if replica == "" {
		return nil
	}
	return func(node string) uint64 { return Weight(node, replica) }
}
