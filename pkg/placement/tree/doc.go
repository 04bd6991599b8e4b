// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree is the spread tree: the nodes of a cluster under the levels of a
// workload, each branch with the pods that count below it.
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
// A cluster has many workloads, few lists of levels and few sizes of pods. So a tree is
// three parts, each shared as widely as it can be, and a View puts them together:
//
//   - Nodes, Topology: the nodes over one list of levels, with the load of each branch
//   - Feasibility: the nodes that the filters have refused, for one class of needs
//   - Tally: the pods and records of one revision, only where there are any
//
// To decide one pod:   View.Next
// To rank all nodes:   View.Rank
// To keep it true:     Nodes.Set, Topology.Refresh, Feasibility.Refresh, Tally.SetPods
// To see it:           View.String, View.Explain
//
// The parts live across decisions. The filters are asked about the node that would be
// chosen, and about the next one if they refuse it, and about no other.
//
// Why it is not SwarmKit's fill: filling each node to the level of its successor
// is a staircase (0,0,5 and ten pods gives 2,7,6), its shares include branches
// that are over-full already (100,0,0 and ten pods puts all ten in one branch),
// and its totals are those of before the batch. Here every pod is decided on the
// tree as its predecessors left it, which changes one path of one tally.
//
// Misplaced is how far a tree is from even, in pods that would have to move.
//
// Nothing here is safe for concurrent use.
package tree
