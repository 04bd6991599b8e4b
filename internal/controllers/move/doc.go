// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package move is the controller that carries out Moves: it has a pod replaced before it is evicted, or hands it back.
//
//	           hand over                 the other is ready              it is gone
//	Planned ──► HandingOver ──► Replacing ──────────────────► Evicting ──────────► Done
//	   │                            │ it takes too long           │ it takes too long
//	   ▼                            ▼                             ▼
//	Failed                       Undoing ◄────────────────────────┘
//	                                │ it is its ReplicaSet's again, which has removed the other
//	                                ▼
//	                             Undone
//
// A pod whose node does not answer is kept when the other one is ready: from Replacing it goes on to Waiting, and from there, when the node
// answers again, to Undoing or Evicting.
//
// A pod that no other one can be ready beside is evicted first: from Planned its Move goes on to Evicting, and from there to Done or Failed. Nothing is
// put on the pod.
//
// Nothing is remembered that is not in the API: each step is found from the objects as they are, and is one request. A
// controller that ends between two of them is followed by one that goes on.
//
//   - step.go: which step is next, pure
//   - first.go: the same for a pod that no other one can be ready beside, which is evicted before one comes
//   - facts.go: what a step depends on, read from the API server
//   - extra.go: the pod that has come in the place of another one
//   - away.go: the same for a pod whose node does not answer; stays.go: which of two stays when it does again
//   - reconciler.go: the requests, one for each step
//   - marks.go: what is put on pods meanwhile, and taken off them
//   - metrics.go: what is counted
//   - owners.go: what a pod is of; history.go: its Moves; budget.go: how many more may be made
//   - lookup.go: whether a pod may be moved at all, for those who ask again and again
//   - new.go: a Move as those make it who ask for one
package move
