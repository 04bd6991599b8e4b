// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preassignedfirst is the plugin that orders the scheduling queue: by
// priority; then pods whose node is chosen already before all others; then by age.
//
// It promises that a pod which can run on one node only is asked about before the
// pods of the same priority that can run elsewhere, those of its own batch among
// them, and that it never outruns a pod of higher priority. SwarmKit confirms
// preassigned tasks before it looks at its queue; without that a batch takes the
// room on a node which is the only one for another pod.
//
// Nothing starves behind it: a pod that is refused leaves the queue and comes back
// after its back-off, or when something has changed for it.
package preassignedfirst
