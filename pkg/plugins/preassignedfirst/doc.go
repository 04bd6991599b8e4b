// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preassignedfirst is the plugin that orders the scheduling queue: by
// priority, and then by age, where pods whose node is chosen already count as ten seconds older.
//
// It promises that a pod which can run on one node only is asked about before the
// pods of the same priority that can run elsewhere and have come with it, those of its own batch among
// them; that it never outruns a pod of higher priority; and that no pod waits for pods that came
// more than ten seconds after it. SwarmKit confirms
// preassigned tasks before it looks at its queue; without that a batch takes the
// room on a node which is the only one for another pod.
//
// Nothing starves behind it: a pod that is refused leaves the queue and comes back
// after its back-off, or when something has changed for it.
package preassignedfirst
