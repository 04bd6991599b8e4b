// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// prefetch says when the filters are asked about many nodes at once.
type prefetch struct {
	// fewer nodes than parallelFrom are asked about one after the other: so many take less than to share them out.
	parallelFrom int
	// after is after how many single questions that were refused all nodes are asked about together.
	// A pod that needs so many is one that fits on few nodes, or on none.
	after int
}

// usualPrefetch is the prefetch of all but tests, whose clusters are small.
var usualPrefetch = prefetch{parallelFrom: 16, after: 100}

// question is a cycle's questions to the filters.
type question struct {
	// ask asks the filters, nominated whether pods are nominated for a node. Both may be
	// called by many at once.
	ask       func(node string) *fwk.Status
	nominated func(node string) bool
	// parallel calls a function with all numbers below n, many at once. After an error
	// some may be missing.
	parallel func(n int, do func(i int)) error
	nodes    *tree.Nodes
	topology *tree.Topology
	of       *filtered
	prefetch prefetch

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

// fit answers for the filters about a node that they have not refused.
func (q *question) fit(node int32) (fits bool, reason int) {
	if q.err == nil && q.singles >= q.prefetch.after {
		q.singles = 0
		q.prefetchAll()
		if q.of.Allowed(node) || q.of.Refused(node) {
			return q.of.Allowed(node), q.of.Reason(node)
		}
	}
	if q.err != nil {
		q.expire(node)
		return false, otherReason
	}
	q.store(node, q.query(q.nodes.Name(node)))
	if !q.of.Allowed(node) {
		q.singles++
	}
	return q.of.Allowed(node), q.of.Reason(node)
}

// query has the filters asked. Many may call it at once.
func (q *question) query(node string) (s answer) {
	before := q.nominated(node)
	s.status = q.ask(node)
	s.besideNominated = before || q.nominated(node)
	return s
}

// store notes an answer. An answer beside nominated pods must not outlive them, and
// that a node was allowed is not to outlive the cycle.
func (q *question) store(node int32, s answer) {
	switch {
	case s.status.IsSuccess():
		q.of.Allow(node)
		q.expire(node)
		return
	case !s.status.IsRejected():
		q.err = s.status.AsError()
		q.expire(node)
		q.of.Refuse(node, otherReason)
		return
	}
	q.of.Refuse(node, q.of.reason(s.status))
	if s.besideNominated {
		q.expire(node)
	}
}

// expire forgets the answer for a node after the cycle.
func (q *question) expire(node int32) { q.of.expiring = append(q.of.expiring, node) }

// prefetchFew asks about all open nodes of the cluster if they are few, and few of all, as after
// one has changed that was refused like all others.
func (q *question) prefetchFew() {
	if open := q.of.Open(); open >= q.prefetch.parallelFrom || 10*open > q.nodes.Len() {
		return
	}
	for _, node := range q.of.OpenNodes() {
		if q.store(node, q.query(q.nodes.Name(node))); q.err != nil {
			return
		}
	}
}

// prefetchAll asks about all open nodes of the topology in parallel, if they are many. Those that
// the pod's levels leave out are not among them: the reason for these is the levels,
// which are not needs, and would be believed of every workload.
func (q *question) prefetchAll() {
	var open []int32
	for _, node := range q.topology.Nodes() {
		if !q.of.Refused(node) && !q.of.Allowed(node) {
			open = append(open, node)
		}
	}
	if len(open) >= q.prefetch.parallelFrom {
		q.prefetchThese(open)
	}
}

// probe asks about open nodes until the pod fits on one, and about all of them in parallel if it does not fit on the first few: a
// topology is not to be built for a pod that fits nowhere.
func (q *question) probe() {
	open := q.of.OpenNodes()
	for i, node := range open {
		if i == q.prefetch.parallelFrom {
			q.prefetchThese(open[i:])
			return
		}
		if q.store(node, q.query(q.nodes.Name(node))); q.err != nil || q.of.Allowed(node) {
			return
		}
	}
}

func (q *question) prefetchThese(open []int32) {
	answers := make([]answer, len(open))
	if q.err = q.parallel(len(open), func(i int) { answers[i] = q.query(q.nodes.Name(open[i])) }); q.err != nil {
		return
	}
	for i, node := range open {
		if q.store(node, answers[i]); q.err != nil {
			return
		}
	}
}
