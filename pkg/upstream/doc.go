// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream changes a kube-scheduler before it runs, where its framework has no
// extension point. Nothing here knows how pods are placed.
//
//   - cache.go, journal.go: which nodes have changed since the last snapshot
//   - confirm.go: what became of a binding whose answer did not come
//   - narrow.go: which waiting pods are looked at when another one is bound
//   - pace.go, yield.go: the next pod waits for those that bind
//
// When the API server or etcd goes away in the middle, a binding may have been made that
// fails as the scheduler sees it. Upstream forgets the pod, so that the room it takes counts
// as free, decides it again, and is refused; what was decided meanwhile was decided by a
// wrong count, and nothing that follows needs to mend it. So whoever fails to bind a pod is
// made to look where it is before anything is forgotten.
package upstream
