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
	// fits asks the filters, nominated whether pods are nominated for a node. Both may be
	// called by many at once.
	fits      func(node string) (bool, error)
	nominated func(node string) bool
	// changed is the version at which a node changed last.
	changed func(node string) uint64
	// parallel calls a function with all numbers below n, many at once. After an error
	// some may be missing.
	parallel func(n int, do func(i int)) error
	snapshot []fwk.NodeInfo
	of       *planted
	pace     pace
	// known is what the filters have said already. It outlives the cycle if lasting.
	known   answers
	lasting bool

	singles int    // questions asked one after the other
	last    string // node about which they were asked
	err     error
}

// best returns the tree's best node that fits.
func (q *question) best(t *tree.Tree) string {
	for {
		node, ok := t.NextAhead(q.ask, q.ahead)
		if !ok || q.err != nil || node == q.last {
			return node
		}
		// This one is from memory.
		if q.confirm(node) {
			return node
		}
		t.Recheck(node)
	}
}

// ask answers for the filters if they have said it before.
func (q *question) ask(node string) bool {
	if q.err != nil {
		return false
	}
	if !q.lasting {
		q.pass(node)
	}
	if q.singles > q.pace.patience {
		q.singles = 0
		q.ahead(q.all())
	}
	if fits, known := q.recall(node); known {
		return fits
	}
	q.singles++
	return q.confirm(node)
}

// all are the nodes of the tree. Those that the pod's levels leave out are not among
// them: that they are refused is said of the levels, which are not needs, and would be
// believed of every workload.
func (q *question) all() []string {
	names := make([]string, 0, q.of.tree.Len())
	for _, info := range q.snapshot {
		node := info.Node()
		if node == nil {
			continue
		}
		if _, has := q.of.tree.Tally(node.Name); has {
			names = append(names, node.Name)
		}
	}
	return names
}

// said is what the filters said of a node.
type said struct {
	fits bool
	err  error
	// beside: pods were nominated for the node before they were asked, or after. Who is
	// nominated while they are asked is not known, and nominations end at any time.
	beside bool
}

// put has the filters asked. Many may call it at once.
func (q *question) put(node string) (s said) {
	before := q.nominated(node)
	s.fits, s.err = q.fits(node)
	s.beside = before || q.nominated(node)
	return s
}

// confirm asks the filters, whatever they have said before.
func (q *question) confirm(node string) bool {
	s := q.put(node)
	if s.err != nil {
		q.err = s.err
		return false
	}
	q.last = node
	q.learn(node, s)
	return s.fits
}

func (q *question) recall(node string) (fits, known bool) {
	a, known := q.known[node]
	return a.fits, known && a.changed == q.changed(node)
}

// learn remembers an answer, unless it was given beside nominated pods and would outlive them.
func (q *question) learn(node string, s said) {
	if q.lasting && s.beside {
		delete(q.known, node)
		q.pass(node)
		return
	}
	q.known[node] = answer{q.changed(node), s.fits}
}

// pass has the tree forget after the cycle what the filters said of a node.
func (q *question) pass(node string) {
	m := &q.of.memory
	m.passing = append(m.passing, node)
}

// ahead asks about nodes in parallel, if they are many. To a workload that begins, equal
// zones are drawn, and the filters are asked about all their nodes.
func (q *question) ahead(nodes []string) {
	var unknown []string
	for _, node := range nodes {
		if _, known := q.recall(node); !known {
			unknown = append(unknown, node)
		}
	}
	if len(unknown) < q.pace.few || q.err != nil {
		return
	}
	heard := make([]said, len(unknown))
	if q.err = q.parallel(len(unknown), func(i int) { heard[i] = q.put(unknown[i]) }); q.err != nil {
		return
	}
	for i, node := range unknown {
		if q.err = heard[i].err; q.err != nil {
			return
		}
		q.learn(node, heard[i])
	}
}
