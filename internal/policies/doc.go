// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies knows the PlacementPolicies and ClusterPlacementPolicies of the cluster, for all plugins of
// all profiles of a process: For returns the one that they share.
//
// It promises that no pod is placed as if there were no policy while it is not
// known whether there is one; but for pods of a DaemonSet, which no policy places, and for a scheduler without the right to
// read policies. The kinds may be installed and removed at any time: see package optionalkind.
//
//   - policies.go: what is known, and who shares it
//   - watch.go: how it comes to be known; decode.go: and each policy by itself
//   - wake.go: which pods wait because of what was known before
//   - namespaces.go: which policies of the cluster are for the pods of a namespace
package policies
