// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parity places the same services on the same clusters twice: with the
// real scheduler of SwarmKit, in memory, and with the spread tree of Espalier.
//
//	Cluster ──► Swarm    the scheduler of github.com/moby/swarmkit/v2 over its memory store
//	        ├─► Ours     pkg/placement/tree with the filters of pkg/placement: constraint,
//	        │            hostport, limit, platform
//	        └─► Room     SwarmKit's filters, said once more in a few lines
//	             │
//	             ▼
//	           Compare   as many tasks placed; at every level as even as can be, and so
//	                     never less even than SwarmKit; the same counts where SwarmKit is
//
// It is a module of its own: SwarmKit brings an older Raft and other libraries which
// must not bend the versions of the product. Nothing here is shipped.
//
// What differs on purpose is no input of a comparison but a row in docs/parity.md.
package parity
