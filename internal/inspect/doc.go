// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect answers people's questions about a snapshot of a cluster: how a workload is spread, why a pod is where it is, and where
// pods would go. The scheduler's own plugins give the answers, over the simulator.
//
//   - cluster.go: a snapshot with a scheduler over it
//   - workload.go: which workload is meant, and what its next pod is like
//   - tree.go: how a workload is spread
//   - balance.go: which workloads are least even
//   - explain.go: why a pod is pending, or is where it is
//   - simulate.go: where pods would go; change.go, manifest.go: of what nodes and workloads
//
// What it returns is for output: each type is documented by its JSON.
package inspect
