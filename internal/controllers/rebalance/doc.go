// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rebalance is the controller that makes Moves for Deployments whose pods are not even any more: because a zone has come
// back, a node has joined, or room is where there was none.
//
// A Move is made only if fewer pods are misplaced after it, the first level first. So the Moves of a Deployment end, and there are no
// two that undo each other.
//
//   - options.go: what bounds the Moves
//   - window.go: the hours of the day in which they are made
//   - cluster.go: nodes, pods and Moves at one moment
//   - quiet.go: since when nothing has happened to a Deployment
//   - planned.go: the pod of a Deployment that should go
//   - spared.go: the pod that goes where that one asks to be left where it is
//   - verdict.go: what need not be looked at again
//   - attempt.go: whether the last Move has made anything better
//   - room.go: how many Moves more may be made
//   - controller.go: the look at all Deployments
package rebalance
