// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// pace says when the filters are asked about many nodes at once.
type pace struct {
	// few nodes are asked about one after the other: so many take less than to share them out.
	few int
	// patience is after how many single questions all nodes are asked about together.
	// A pod that needs so many is one that fits on few nodes, or on none.
	patience int
}

// usual is the pace of all but tests, whose clusters are small.
var usual = pace{few: 16, patience: 100}

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
	pace     pace

	singles int // nodes asked about one after the other
	err     error
}

// said is what the filters said of a node.
type said struct {
	status *fwk.Status
	// beside: pods were nominated for the node before they were asked, or after. Who is
	// nominated while they are asked is not known, and nominations end at any time.
	beside bool
}

// fit answers for the filters about a node that they have not refused.
func (q *question) fit(node int32) (fits bool, reason int) {
	if q.err == nil && q.singles >= q.pace.patience {
		q.singles = 0
		q.askAll()
		if q.of.Allowed(node) || q.of.Refused(node) {
			return q.of.Allowed(node), q.of.Reason(node)
		}
	}
	if q.err != nil {
		q.pass(node)
		return false, otherReason
	}
	q.singles++
	q.learn(node, q.put(q.nodes.Name(node)))
	return q.of.Allowed(node), q.of.Reason(node)
}

// put has the filters asked. Many may call it at once.
func (q *question) put(node string) (s said) {
	before := q.nominated(node)
	s.status = q.ask(node)
	s.beside = before || q.nominated(node)
	return s
}

// learn notes an answer. What was said beside nominated pods is not to outlive them, and
// that a node was allowed is not to outlive the cycle.
func (q *question) learn(node int32, s said) {
	switch {
	case s.status.IsSuccess():
		q.of.Allow(node)
		q.pass(node)
		return
	case !s.status.IsRejected():
		q.err = s.status.AsError()
		q.pass(node)
		q.of.Refuse(node, otherReason)
		return
	}
	q.of.Refuse(node, q.of.reason(s.status))
	if s.beside {
		q.pass(node)
	}
}

// pass has what was said of a node forgotten after the cycle.
func (q *question) pass(node int32) { q.of.passing = append(q.of.passing, node) }

// askFew asks about all open nodes of the cluster if they are few, and few of all, as after
// one has changed that was refused like all others.
func (q *question) askFew() {
	if open := q.of.Open(); open >= q.pace.few || 10*open > q.nodes.Len() {
		return
	}
	for _, node := range q.of.OpenNodes() {
		if q.learn(node, q.put(q.nodes.Name(node))); q.err != nil {
			return
		}
	}
}

// askAll asks about all open nodes of the topology in parallel, if they are many. Those that
// the pod's levels leave out are not among them: that they are refused is said of the levels,
// which are not needs, and would be believed of every workload.
func (q *question) askAll() {
	var open []int32
	for _, node := range q.topology.Nodes() {
		if !q.of.Refused(node) && !q.of.Allowed(node) {
			open = append(open, node)
		}
	}
	if len(open) < q.pace.few {
		return
	}
	heard := make([]said, len(open))
	if q.err = q.parallel(len(open), func(i int) { heard[i] = q.put(q.nodes.Name(open[i])) }); q.err != nil {
		return
	}
	for i, node := range open {
		if q.learn(node, heard[i]); q.err != nil {
			return
		}
	}
}
