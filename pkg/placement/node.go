// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

// Node is what the algorithms know of one node: where it hangs in the topology,
// and what already counts on it. It is a value and may be kept.
type Node struct {
	// Name identifies the node and is the last tie-break of every choice.
	Name string

	// Values holds the node's property for each level of the workload, first
	// level first. Its length must be the number of levels.
	Values []Value

	// Tally counts the pods on the node.
	Tally Tally

	// Usage is what all pods on the node have requested. Where nodes or branches tie in
	// everything else, the one with the lower Usage.Load comes first.
	Usage Usage

	// Record is how the workload's revision has fared on this node. Faulty nodes
	// are the last choice, never excluded.
	Record

	// Unready marks a node whose Ready condition is not true. Its pods do not
	// count for its branches: they do not run, and the workload's controller is
	// about to replace them. It comes after every faulty node, because a pod
	// that tolerates it would otherwise find it the emptiest of all.
	Unready bool

	// Soft marks a node that a pod should go to only where nothing else is as healthy, such as one
	// with a taint PreferNoSchedule that the pod does not tolerate. Among the nodes of a leaf, and at a
	// level over host names, it comes after those that are not soft, whatever counts on them.
	Soft bool

	// Ends is the hour in which the node ends, see lifetime.Hour, 0 for none. Among the nodes of a leaf, and at a level over host names, of
	// those that tie in all but their loads the one that ends later comes first, and one without an end before all others.
	Ends int32
}

// Value is a node's property at one level.
type Value struct {
	// Text is the property's value, "" when Missing.
	Text string
	// Missing says that the node does not have the property at all. Such a node
	// shares the branch "" with nodes on which the value is empty, unless the
	// level leaves nodes without the property out.
	Missing bool
}

// Tally is the number of pods on a node, three ways. Each is at least 0, and
// Revision <= Workload <= All.
type Tally struct {
	// Revision counts the pods of the workload that are of the revision being placed.
	Revision int64
	// Workload counts the pods of the workload, of whatever revision.
	Workload int64
	// All counts every pod. It is for people to read and decides nothing.
	All int64
}

// Add returns the sum of two tallies.
func (t Tally) Add(o Tally) Tally {
	return Tally{t.Revision + o.Revision, t.Workload + o.Workload, t.All + o.All}
}

// Sub returns the tally less another.
func (t Tally) Sub(o Tally) Tally {
	return Tally{t.Revision - o.Revision, t.Workload - o.Workload, t.All - o.All}
}

// Fits answers whether the filters allow one more pod of the batch on the node.
// The algorithms call it as seldom as they can, best node first.
type Fits func(node string) bool
