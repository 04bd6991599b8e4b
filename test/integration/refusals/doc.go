// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package refusals holds what the scheduler says of a pod that it cannot place to docs/troubleshooting.md, word for word: each reason that a
// filter gives has a row there, and each row has somebody who gives it.
//
// The scheduler is the real one with the shipped profile; its API server is a fake
// clientset. A message counts all nodes of the cluster, so every case needs a
// cluster of its own, in milliseconds.
package refusals
