// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision says in a few words how the tree came to a pod's node, so that the words can be kept beside the pod.
//
//   - decision.go: the choices, and how they are written
//   - parse.go: reading that
package decision
