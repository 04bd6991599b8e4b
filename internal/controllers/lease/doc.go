// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lease is the controller that renews the leases of pods that ask for it, by the annotation espalier.dev/renew-lease (TV19).
//
// Where the pod's node lives for longer than the lease, the lease begins anew: the annotation espalier.dev/lease-expiry has another time, and
// the one that asked is gone. Otherwise the pod is moved, if another node takes it that lives long enough. If there is none the pod
// stays with the lease that it has, an Event says so, and it still asks.
//
//   - controller.go: the look at all pods that ask
//   - renewal.go: what becomes of one of them
//   - nodes.go: which nodes take it
package lease
