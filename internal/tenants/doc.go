// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenants knows the order of the pods of all partitions, for all plugins of all profiles of a scheduler: For returns the one
// that they share. It lets pods into the scheduling queue in that order.
//
//	objects, pods, nodes ──► order, anew every two seconds at most ──► which pods are let in, and who comes first in the queue
//
// A pod that waits is held until it is among the first so many that have not been tried. So the queue, which is not
// sorted anew when the order changes, is short. Each pod that is taken from the queue lets in another: none is held for good
// because those before it fit nowhere. Autoscalers see each pod once it has been tried.
//
// A pod that was made since the order was computed comes last until it is computed again. It is let in if there is room for it.
//
//   - tenants.go: what is known, and who shares it
//   - watch.go: what changes the order
//   - compute.go: the order is computed anew
//   - admit.go: who is let in
//   - turn.go: who comes first in the queue
//   - reserve.go: pods that are being bound, and their identities
//   - evicted.go: who made way for whom
package tenants
