// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream changes a kube-scheduler before it runs, where its framework has no
// extension point. It knows no plugin of ours but by the interface Hinter. It and package filters
// below it are the only importers of k8s.io/kubernetes/pkg/scheduler.
//
//   - adapt.go: all that follows, in its order
//   - hints.go, hinting.go, filters.go, metrics.go: a plugin proposes a node, and all others need
//     no look
//   - preemption.go: of nodes on which as many victims would make way, the plugin says which is the best
//   - cache.go, journal.go: which nodes have changed since the last snapshot
//   - confirm.go: what became of a binding whose answer did not come
//   - rebind.go: where a pod goes whose binding was refused; announce.go: which pods get the event Scheduled
//   - narrow.go: which waiting pods are looked at when another one is bound
//   - namespaces.go: which waiting pods are tried again for the labels of namespaces
//   - failures.go: why a pod was refused is written while the next one is decided
//   - discarded.go: a pod that the queue has discarded is put back
//   - countall.go: a constraint with an empty selector counts all pods
//   - pace.go, yield.go: the next pod waits for those that bind
//   - sample.go: a pod on the full path is decided about by a sample of the nodes
//   - withhold.go: pods that must not be decided now
//   - share.go: of several schedulers that are active each places its own pods
//   - names.go: what the command has of kube-scheduler; asserts.go: which methods are overridden
//
// # Hints
//
//	              ┌─ full path: filter all nodes, score those that fit ─┐
//	PreFilter ──► hint                                                  ├─► Reserve ──► bind
//	              └─ the best node of the tree, then the next … fits ───┘
//
// The framework asks every profile for a hint after PreFilter, runs the filters on the
// node it is given, and takes it if they pass; the full path is for all else. So a
// hint can be wrong in one way only: it can name a node that fits and is not among
// the best. What would make it so has no hint:
//
//   - pods that the plugin does not place, and those that have preferences of their
//     own: scoring is for them
//   - pods nominated for a node, of which the scheduler tries that first
//   - pods placed as a group, which may be confined to some of the nodes, as are those
//     that a PreFilter plugin confined
//   - profiles whose other scorers may outvote the plugin, or that have extenders
//
// Diagnosis and the search for victims are the full path's: where no node fits there is no hint. What
// it came to is remembered, and is the answer for the next pod like it.
//
// # Bindings
//
// When the API server or etcd goes away in the middle, a binding may have been made that
// fails as the scheduler sees it. Upstream forgets the pod, so that the room it takes counts
// as free. It decides the pod again, and is refused. What it decided meanwhile, it decided by a
// wrong count, and nothing that follows needs to mend it. So after a binding has failed, we look
// where the pod is before anything is forgotten.
package upstream
