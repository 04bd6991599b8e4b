// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ecosystem tells what becomes of spreads beside programs that make nodes, take them away and evict pods: Karpenter with its own
// provider of played machines, and the descheduler. Each runs as it is released, on a devcluster whose nodes are all theirs.
//
//   - story_test.go: the cluster, and what the stories share
//   - neighbours_test.go: Karpenter and the descheduler
//   - nodepool.yaml, descheduler.yaml: how these are configured
package ecosystem
