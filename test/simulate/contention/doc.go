// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contention plays several schedulers that place pods on the same nodes at once. Each decides by
// what it has seen, which others have changed since, and whoever has the nodes checks what it commits.
//
//		pod ─► decide, by the tree or by a sample ─► m candidates ─► commit to the first ─► bound
//		 ▲                                                │ refused: the next candidate
//		 └── all refused: a conflict, the pod goes back ◄─┘
//
//	  - agent.go: the capacity of nodes, which a commit reserves and checks
//	  - bytree.go: a scheduler as ours is, with a tree over all nodes as it has seen them
//	  - bysample.go: a scheduler as Vela's is, which asks the agent for a sample; score.go: what nodes of it are worth
//	  - run.go: what happens, and events.go: when
//
// The tree is the product's, and so are its order of nodes that tie and the samples. Everything else is
// played: there is no API server, no pod and no clock. All that is random comes from one seed, so that
// the same Config always has the same Result.
package contention
