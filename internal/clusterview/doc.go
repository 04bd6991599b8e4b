// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterview translates Kubernetes into the nouns of package placement:
// NodeInfo, Pod, owners, labels and annotations on one side; node, tally, workload,
// revision and level on the other. It is the only translator, so that two plugins
// cannot read one pod in two ways. Code that keeps state of its own, or has one user only,
// is in a sub-package. Package podcount says which pods count on which node. Package
// podoutcome says what has failed or succeeded with a pod on its node.
//
//   - keys.go: every label and annotation key of ours
//   - workload.go: which workload and revision a pod is of
//   - ownership.go: which pods one of several active replicas places
//   - preassigned.go: which pods have their node already
//   - levels.go: which levels a pod asks for; selector.go: which pods its constraints count; services.go: which
//     pods count for one that stands alone
//   - limits.go: which limits a pod has, and a node's domains
//   - constraints.go, platform.go: what a pod wants of its node, and the node as these see it
//   - policy.go: what a PlacementPolicy says, and which one governs a pod; clusterpolicy.go: what a
//     ClusterPlacementPolicy says; policy_decode.go: how both are decoded
//   - placedby.go: the annotation that says by what a pod was placed; ignored.go: what of a pod's constraints has no effect
//   - needs.go: which pods get the same answers from filters; refusal.go: why a pod fits on no node
//   - node.go: a node's values, state and name; request.go: what a pod requests of one
//   - hostports.go: which host ports a pod wants, and a node keeps
//   - family.go: which pods a pod's revision is among, and whom to tell of its fate
//   - forgiven.go: up to when a node's failures are forgiven
//   - faults.go, cycle.go, deletioncost.go: what one plugin leaves for another within a scheduling cycle
//   - leaving.go, silent.go, soft.go: nodes about to be removed, unreachable nodes, PreferNoSchedule taints
//   - spared.go: which pods ask to be left where they are
//   - lifetime.go: when a node ends; lease.go: for how long a pod wants to stay
//   - writtenend.go: which controller has written when a node ends, and since when it runs; nodeclaim.go: when it ends by its NodeClaim
//   - changes.go: in which namespaces something has changed
package clusterview
