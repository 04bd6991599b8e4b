// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package domainlimits is the plugin that keeps at most so many pods of a workload in
// one domain: the nodes that share a value of a node property. Several properties may
// be limited at once.
//
// It promises that no pod goes to a node where a domain has as many pods of the pod's
// revision as the limit allows, whatever is decided at the same time. It does not
// remove pods when a limit is lowered.
//
//   - Pods of a revision are counted, not those of a workload: in a rollout that starts
//     new pods before it stops old ones, pods of the old revision would keep out the
//     very pods that are to replace them, for ever. While a rollout lasts a domain may
//     so have as many pods of each revision.
//   - A pod counts from the moment a node is chosen for it until it has ended or is told
//     to end: the one that follows it need not wait for it to be gone.
//   - Pods on cordoned nodes count, and also those on nodes that are not ready, which may
//     still run: a limit that holds only while all is well holds nothing.
//   - A node without the property of a limit takes no pod that has the limit.
//   - Pods of a DaemonSet are held to the limits of their own annotation, but not to
//     those of a policy or of the profile's defaults: their controller has chosen
//     their nodes, and these limits are for those who have not.
//
// It answers the seed "Scheduler design": the filter of max replicas per node. A pod
// whose limits cannot be read stays Pending, with a message that quotes the bad part.
//
//   - filter.go: PreFilter, its extensions and Filter
//   - state.go: what one cycle knows
//   - events.go: what makes a refused pod worth another try
package domainlimits
