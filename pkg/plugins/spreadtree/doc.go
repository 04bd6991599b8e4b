// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spreadtree is the plugin that places the pods of one workload evenly over
// its levels: it ranks the nodes that fit by the spread tree of package tree.
//
// It promises that of the nodes that pass the filters, the best class of the tree
// scores 100 and every class after it less. With a weight above the sum of all
// other scorers' weights times 100 the others only break its ties.
//
// It answers the seed "Scheduler design": a tree of nodes built for one service,
// shared by a batch of identical tasks. One tree is kept for each batch (workload,
// revision and levels) and brought up to date from the nodes that have changed.
//
//   - score.go: PreScore and Score
//   - hint.go: the node that is proposed instead, where all others need no look
//   - reserve.go: Reserve and Unreserve
//   - preenqueue.go: PreEnqueue, the wait for a batch to be complete
//   - forest.go: the trees, by batch
//   - grove.go, idle.go: which of them are kept, and for how long
//   - faults.go: how they learn on which nodes a revision has failed
//   - debounce.go: when a batch is complete
//   - metrics.go: what a scrape is told
package spreadtree
