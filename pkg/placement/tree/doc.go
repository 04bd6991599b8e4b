// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree is the spread tree: the nodes of a cluster, hung under the levels
// of one workload, each branch knowing how loaded it is.
//
//	spread zone; then nodes            pods
//	all                                  5
//	├── zone-b                           2   <- the lowest branch: next pod goes here,
//	│   ├── node-4                       0   <-   and inside it to the best node
//	│   └── node-3                       2
//	└── zone-a                           3
//	    ├── node-1                       1
//	    └── node-2                       2
//
// The promise: at every level, from the first down, the next pod goes to the
// branch that is lowest among those with a node the filters allow, and inside
// the leaf to the best such node. Evenness is judged level by level, inside the
// branch that the level above has chosen.
//
// To decide one pod:        Next
// To decide a whole batch:  Place
// To rank all nodes:        Rank
// To keep it true:          Set, Add, Remove, Recheck, SetRecord, SetRule
// To see it:                String, Explain
//
// A tree lives across decisions. It remembers what the filters said of a node
// until the node changes or the caller says Recheck, and asks them only when the
// answer decides: in a leaf, the best node first. Where two branches tie in
// everything but the number of nodes they can offer, that number has to be known,
// and all nodes of one of them are asked, once; from then on only what has changed.
// So the first pods of a batch over equal zones pay for a look at the zones' nodes,
// and every pod after them for the few nodes that have changed since.
//
// Why it is not SwarmKit's fill: filling each node to the level of its successor
// is a staircase (0,0,5 and ten pods gives 2,7,6), its shares include branches
// that are over-full already (100,0,0 and ten pods puts all ten in one branch),
// and its totals are those of before the batch. Here every pod is decided on the
// tree as its predecessors left it, which costs a few heap moves a pod.
//
// How far a tree is from even, in pods that would have to move, says Misplaced.
//
// A Tree is not safe for concurrent use.
package tree
