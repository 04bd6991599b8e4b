// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optionalkind follows the objects of a kind that may not be installed, for a scheduler. What is known of a kind is one of
// three things:
//
//	unread ──► known: the objects; or that the kind is not installed, or that it may not be read
//	   │          ▲
//	   └──► unreadable: the API server does not answer
//
// A kind may be installed, removed and installed again at any time. Until it is there the API server is asked for it now and then, and there
// are no objects; from the moment it is seen they are unread.
// Registering the kind with the scheduler's queue was rejected: the scheduler then waits at its start for an informer that
// without the kind never syncs.
//
//   - kind.go: what is known
//   - watch.go: how it comes to be known
//   - apiserver.go: the API server
package optionalkind
