// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package feasibility

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Prefetch says when the filters are asked about many nodes at once.
type Prefetch struct {
	// Fewer nodes than ParallelFrom are asked about one after the other, which is quicker than to start goroutines for them.
	ParallelFrom int
	// After this many refusals one by one, all open nodes are asked about in parallel. A pod that is refused so often
	// fits on few nodes, or on none.
	After int
}

// UsualPrefetch is that of all but tests, whose clusters are small.
var UsualPrefetch = Prefetch{ParallelFrom: 16, After: 100}

// Question is a cycle's questions to the filters.
type Question struct {
	// Ask asks the filters, Nominated whether pods are nominated for a node. Both may be
	// called by many at once.
	Ask       func(node string) *fwk.Status
	Nominated func(node string) bool
	// Parallel calls a function with all numbers below n, many at once. After an error
	// some may be missing.
	Parallel func(n int, do func(i int)) error
	Nodes    *tree.Nodes
	// Topology is that of the pod's levels. It is needed from Fit on.
	Topology *tree.Topology
	Of       *Class
	Prefetch Prefetch

	singles int // nodes that were refused, asked about one after the other
	err     error
}

// answer is the filters' answer for a node.
type answer struct {
	status *fwk.Status
	// besideNominated: pods were nominated for the node before the filters ran, or after. Which
	// are nominated while they run is not known, and a nomination ends at any time.
	besideNominated bool
}

// Fit answers for the filters about a node that they have not refused.
func (q *Question) Fit(node int32) (fits bool, reason int) {
	if q.err == nil && q.singles >= q.Prefetch.After {
		q.singles = 0
		q.prefetchAll()
		if q.Of.Allowed(node) || q.Of.Refused(node) {
			return q.Of.Allowed(node), q.Of.Reason(node)
		}
	}
	if q.err != nil {
		q.expire(node)
		return false, otherReason
	}
	q.store(node, q.query(q.Nodes.Name(node)))
	if !q.Of.Allowed(node) {
		q.singles++
	}
	return q.Of.Allowed(node), q.Of.Reason(node)
}

// Err is why the filters could not be asked, nil if they could.
func (q *Question) Err() error { return q.err }

// query has the filters asked. Many may call it at once.
func (q *Question) query(node string) (s answer) {
	before := q.Nominated(node)
	s.status = q.Ask(node)
	s.besideNominated = before || q.Nominated(node)
	return s
}

// store notes an answer. An answer beside nominated pods must not outlive them, and
// that a node was allowed is not to outlive the cycle.
func (q *Question) store(node int32, s answer) {
	switch {
	case s.status.IsSuccess():
		q.Of.Allow(node)
		q.expire(node)
		return
	case !s.status.IsRejected():
		q.err = s.status.AsError()
		q.expire(node)
		q.Of.Refuse(node, otherReason)
		return
	}
	q.Of.Refuse(node, q.Of.reason(s.status))
	if s.besideNominated {
		q.expire(node)
	}
}

// expire forgets the answer for a node after the cycle.
func (q *Question) expire(node int32) { q.Of.expiring = append(q.Of.expiring, node) }

// AskBesideNominated asks again about the refused nodes for which pods are nominated now. One that was refused without them is refused
// beside them too, but may be for more reasons, and the message of a pod that fits nowhere counts these.
func (q *Question) AskBesideNominated() {
	for _, node := range q.Nodes.All() {
		name := q.Nodes.Name(node)
		if q.err == nil && q.Of.Refused(node) && q.Nominated(name) {
			q.store(node, q.query(name))
		}
	}
}

// PrefetchFew asks about all open nodes of the cluster if they are few, and few of all, as after
// one has changed that was refused like all others.
func (q *Question) PrefetchFew() {
	if open := q.Of.Open(); open >= q.Prefetch.ParallelFrom || 10*open > q.Nodes.Len() {
		return
	}
	for _, node := range q.Of.OpenNodes() {
		if q.store(node, q.query(q.Nodes.Name(node))); q.err != nil {
			return
		}
	}
}

// prefetchAll asks about all open nodes of the topology in parallel, if they are many: those that are neither allowed nor refused. Nodes
// that the pod's levels leave out are not among them. An answer is shared by all workloads of the Class, and the levels are this
// workload's alone.
func (q *Question) prefetchAll() {
	var open []int32
	for _, node := range q.Topology.Nodes() {
		if !q.Of.Refused(node) && !q.Of.Allowed(node) {
			open = append(open, node)
		}
	}
	if len(open) >= q.Prefetch.ParallelFrom {
		q.askParallel(open)
	}
}

// Probe asks about open nodes until the pod fits on one, and about all of them in parallel if it does not fit on the first few: a
// topology is not to be built for a pod that fits nowhere.
func (q *Question) Probe() {
	open := q.Of.OpenNodes()
	for i, node := range open {
		if i == q.Prefetch.ParallelFrom {
			q.askParallel(open[i:])
			return
		}
		if q.store(node, q.query(q.Nodes.Name(node))); q.err != nil || q.Of.Allowed(node) {
			return
		}
	}
}

// askParallel asks about nodes many at once, and notes the answers one after the other. After an error it notes none: an answer that is
// missing has no status, which would read as a success. There must be no error before.
func (q *Question) askParallel(open []int32) {
	answers := make([]answer, len(open))
	if q.err = q.Parallel(len(open), func(i int) { answers[i] = q.query(q.Nodes.Name(open[i])) }); q.err != nil {
		return
	}
	for i, node := range open {
		if q.store(node, answers[i]); q.err != nil {
			return
		}
	}
}
