// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy is the controller that writes the status of PlacementPolicies and ClusterPlacementPolicies: how
// many pods each selects and governs, and what stands in its way.
//
// It decides nothing. Schedulers read policies themselves and never their status, so
// that pods are placed the same whether this controller runs or not. One that
// wrote from the scheduler was rejected: a thousand pods placed would be a thousand
// patches on the path that places them.
//
//   - status.go: how all policies of a namespace, or of the cluster, stand among its pods
//   - flags.go: what of a policy needs a flag of the controller
//   - condition.go: that in conditions
//   - reconciler.go: read, compute, patch what differs
//   - watch.go: when
package policy
