// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faultcache knows how the revisions of workloads have fared on the nodes: it
// is the room with the informers, the lock and the clock around the ledger of package
// failure.
//
//	pods, by the scheduler's informer ──┐
//	pods that have ended, by its own ───┤                  ┌──► the tree and the scores
//	kubelets' warnings ─────────────────┼──► the ledger ───┼──► Events, metrics, taints
//	Reserve and Unreserve ──────────────┤                  │
//	the record of the last scheduler ───┘◄─────────────────┘
//
// It promises that a revision that does not fail costs next to nothing: of its pods
// only those are remembered that have a node and are not yet seen to. The first
// failure has all pods of the revision looked up and recorded in the ledger, and from then
// on each change of them.
//
// Observations may come in any order and more than once: at the start all of them come
// again, from the API and from the record. A scheduler that stands by observes everything, and
// writes and announces nothing until it places its first pod.
//
//   - cache.go: the cache, and what it is made of
//   - handlers.go: the handlers of the informers
//   - observe.go: what the ledger learns of pods
//   - ended.go: the informer of pods that have ended
//   - events.go, pending.go: the warnings of kubelets
//   - times.go: what times of nodes are worth
//   - govern.go: which policy governs a revision
//   - faults.go: what the plugins ask
//   - tick.go: what time brings: proof, absence
//   - marks.go, suspects.go: the Events, and which nodes are tainted; taints.go: the taints
//   - bounds.go: what is forgotten when there is too much
//   - record.go, package record: what the next scheduler reads
//   - metrics.go: the metrics
//
// There is one lock. Nothing of the API server, the framework or the recorder is
// called while it is held; listers are. What is asked under the lock of the scheduling
// queue, which is Known, does not take it.
package faultcache
