// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterview translates Kubernetes into the nouns of package placement:
// NodeInfo, Pod, owners, labels and annotations on one side; node, tally, workload,
// revision and level on the other. It is the only translator, so that two plugins
// cannot read one pod in two ways. What keeps state of its own, or is for one reader only,
// has a room below: podcount, which pods count on which node; podoutcome, what has gone
// wrong with a pod on its node, and what well.
//
//   - keys.go: every label and annotation key of ours
//   - workload.go: which workload and revision a pod is of
//   - preassigned.go: which pods have their node already
//   - levels.go: which levels a pod asks for; selector.go: which pods its constraints count; services.go: which
//     pods count for one that stands alone
//   - limits.go: which limits a pod has, and a node's domains
//   - constraints.go, platform.go: what a pod wants of its node, and the node as these see it
//   - policy.go: what a PlacementPolicy says, and which one governs a pod
//   - node.go: a node's values, state and name; request.go: what a pod requests of one
//   - hostports.go: which host ports a pod wants, and a node keeps
//   - family.go: which pods a pod's revision is among, and whom to tell of its fate
//   - forgiven.go: up to when a node's failures are forgiven
//   - faults.go, cycle.go: what one plugin leaves for another within a scheduling cycle
package clusterview
