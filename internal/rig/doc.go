// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rig runs Espalier's own binaries on this machine: a devcluster, and a
// scheduler with the rights that the manifests give it, each a process of its own.
//
// Whatever a rig starts ends with the rig, in the reverse order, and with the
// process that holds the rig if that one is killed. The demo, the end-to-end
// stories and the integration tests stand on it.
package rig
