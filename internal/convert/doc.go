// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package convert says in Espalier's annotations what others say about placement: stack files of Docker Swarm, and topology spread
// constraints. It is pure: text in, text out.
//
//   - compose.go: services of a stack file
//   - constraints.go: topologySpreadConstraints
package convert
