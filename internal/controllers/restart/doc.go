// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restart is the controller that makes Moves for pods that keep failing on a node that is faulty for them, or hang there: a kubelet
// restarts them where they are, again and again.
//
// Which nodes are faulty for which revisions is in the schedulers' records. What fails by its own fault fails everywhere, and marks no
// node.
//
//   - options.go: what bounds the Moves
//   - failing.go: since when a pod fails
//   - controller.go: the look at all pods on such nodes
package restart
