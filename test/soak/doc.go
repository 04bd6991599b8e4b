// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak has everything happen at once on a devcluster, for as long as one likes: rolling
// updates, scaling, bad releases, policies that change, nodes that come, go, are cordoned, relabelled,
// fall silent and fail their pods. Then all is put right, every workload doubles, and no pod of the
// second half may be where another place would have been more even.
//
//	operator ──► nodes ────┐
//	releaser ──► pods  ────┼──► one scheduler, as it is shipped ──► where the pods are
//	author   ──► policies ─┘
//
// The seed settles what the actors do, and not how it interleaves. It is no part of make test, and has a devcluster of its own, whose nodes are
// all there are.
package soak
