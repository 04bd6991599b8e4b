// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arbiter is the controller that checks bindings before they are made: whether the node has room for the pod. Two schedulers
// on the same nodes each know of the other's pods only when these are bound, and promise the same room twice. The API server does not look,
// and the kubelet ends the pod that does not fit.
//
//	scheduler ── binding ──► API server ── webhook ──► arbiter ── room: allowed, and kept for the pod until the watch shows it there
//	                                                      └────── none: waits once for news of the node, then refuses
//
// It answers the seed "Vela's commit phase", in which an agent commits the pods of a node one at a time, and Nomad's plan applier. No scheduler
// need know of it: one that is refused tries the pod again. The webhook is one of those that a cluster does without: when nobody answers,
// bindings are made as they were before.
//
// A policy in CEL was rejected because it cannot sum, and a token for each node, such as a Lease, because each binding would write it.
//
//   - ledger.go: what takes room on each node, under the node's lock; watch.go: how it learns of it
//   - limits.go: domain limits, which reach beyond a node; counts.go: the pods that they are about, by domain
//   - handler.go: a question of the API server, and the answer
//   - server.go: how it is served, by the leader alone; certificate.go: by which certificate; publish.go: how the API server is told
//   - metrics.go: what it counts
package arbiter
