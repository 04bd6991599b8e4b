// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies knows the PlacementPolicies and ClusterPlacementPolicies of the cluster, for all plugins of
// all profiles of a process: For returns the one that they share.
//
// It promises that no pod is placed as if there were no policy while it is not
// known whether there is one; but for pods of a DaemonSet, which no policy places, and for a scheduler without the right to
// read policies. What it knows of each kind is one of three things:
//
//	unread ──► known: the policies; or that their kind is not installed, or that they may not be read
//	   │          ▲
//	   └──► unreadable: the API server does not answer
//
// A kind may be installed, removed and installed again at any time. Until it is
// there the API server is asked for it now and then, and there are no policies; from
// the moment it is seen they are unread.
// Registering the kind with the scheduler's queue was rejected: the scheduler then
// waits at its start for an informer that without the kind never syncs.
//
//   - policies.go: what is known, and who shares it
//   - watch.go: how it comes to be known; decode.go: and each policy by itself
//   - wake.go: which pods wait because of what was known before
//   - namespaces.go: which policies of the cluster are for the pods of a namespace
//   - source.go: the API server
package policies
