// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

// Record is how one revision of a workload has fared on one node. The zero value
// is that of a node on which nothing is known against it.
type Record struct {
	// Failures counts the failures in the window. Failures that are the workload's own
	// fault count too: without them, a node that has no others would look healthy, and
	// would be the emptiest. If they alone make a node faulty, Failures is the threshold
	// and no more. So an error that occurs on all nodes ranks no node behind another.
	Failures int

	// Unforgiven counts the failures since something of the revision last
	// succeeded on the node, however long ago: they are what a node is on trial for
	// when its mark has faded.
	Unforgiven int

	// Proven says that something of the revision has succeeded on the node within
	// the window, or runs there and has proven itself; since the node was last
	// marked faulty, if it was.
	Proven bool

	// Unproven counts the pods of the revision on the node that have neither
	// succeeded nor failed yet.
	Unproven int64
}

// Faults is the rule by which records count against nodes and branches.
type Faults struct {
	// Threshold is the number of recent failures that mark a node faulty; below 1
	// it is 1.
	Threshold int

	// HalfOpen lets one unproven pod at a time onto a node on which the revision
	// has failed and nothing has succeeded since, and the same of a branch that
	// has as many failures as mark a node. Without it, as in SwarmKit, nothing
	// below the threshold has an effect.
	HalfOpen bool
}
