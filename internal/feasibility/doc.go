// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feasibility asks the filters of a cycle about nodes, one after the other or many at once, and keeps what they said for pods that
// they cannot tell apart.
//
//   - class.go: what they said, and why a pod fits nowhere
//   - question.go: how they are asked
package feasibility
