// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspect taints the nodes that schedulers suspect.
//
// A scheduler knows which workloads fail on which nodes, and leaves the suspects among the nodes in
// its record of failures. It has no right to change a node. This controller has, and does nothing
// else with it:
//
//	scheduler ──► ConfigMap SCHEDULERNAME-failures ──► controller ──► taint espalier.dev/suspect
//
// The files:
//
//   - controller.go: reading the records
//   - taints.go: which taints are added and removed, and the bounds
//
// It promises that only so many nodes are tainted in an hour and at once, whatever a record says,
// that a taint is removed when its node is no longer a suspect, and that no other taint is touched.
package suspect
