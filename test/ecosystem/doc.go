// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ecosystem tells what becomes of spreads beside programs that make nodes, take them away and evict pods: Karpenter with its own
// provider of played machines, and the descheduler. Each runs as it is released, on a devcluster whose nodes are all theirs.
//
//   - main_test.go: the cluster; story_test.go: what the stories share
//   - karpenter_test.go, descheduler_test.go: one neighbour each
//   - nodepool.yaml, descheduler.yaml: how these are configured
package ecosystem
