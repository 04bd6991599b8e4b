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
// shared by a batch of identical tasks. Here the tree is shared by all workloads with the
// same levels, and a batch (workload, revision and levels) has a tally on it.
//
//   - score.go: PreScore and Score
//   - hint.go: the node that is proposed instead, where all others need no look
//   - trees.go: what all decisions share; tally.go: what is of one revision
//   - ties.go: what decides where only names differ; order.go: which node preemption prefers
//   - alternatives.go: which claims of resources have nodes scored
//   - reserve.go: what a pod is bound with: its deletion cost, and, from decision.go, how its node was chosen
//   - idle.go: what is evicted, and when
//   - notices.go: the event that says what of a placement has no effect
//   - metrics.go: the metrics, counted when they are scraped
package spreadtree
