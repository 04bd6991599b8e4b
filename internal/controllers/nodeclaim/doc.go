// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeclaim is the controller that writes on the nodes of Karpenter when they end: when their NodeClaim expires, or by its
// termination timestamp if that is earlier.
//
// The annotation espalier.dev/valid-until of the node is the one place in which everybody else looks. An end that somebody else has written
// stays, unless it was given by the schedule of a pool and Karpenter removes the node before. Where the kind NodeClaim is not installed
// there is nothing to do.
package nodeclaim
