// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import "errors"

// ErrConflict is what a commit comes to that does not fit any more.
var ErrConflict = errors.New("the node has no room")

// Agent has the nodes of a cluster: a cluster agent of Vela, or an API server with an arbiter of bindings.
// Capacity is in any unit, the same for all.
type Agent struct {
	capacity []int64
	bound    []int64 // by node, what its pods have
	reserved []int64 // and what is being committed there
	last     []int64 // when room was taken there last
}

// NewAgent returns one of nodes without pods.
func NewAgent(capacity []int64) *Agent {
	n := len(capacity)
	return &Agent{capacity: capacity, bound: make([]int64, n), reserved: make([]int64, n), last: make([]int64, n)}
}

// Available is what a sampler finds free on a node: nothing that is being committed. It may be below zero, which
// fits no pod.
func (a *Agent) Available(node int) int64 {
	return a.capacity[node] - a.bound[node] - a.reserved[node]
}

// Reserve takes room on a node before it is checked whether there is any, so that no sampler counts on it any more
// (vector VV9).
func (a *Agent) Reserve(node int, request, now int64) {
	a.reserved[node] += request
	a.last[node] = now
}

// Commit checks that what was reserved fits beside what is bound, and binds it. What fails is not reserved any more: a
// conflict, and a binding that fails (vectors VV9, VV10). It is called for one pod of a node at a time.
func (a *Agent) Commit(node int, request int64, bind func() error) error {
	a.reserved[node] -= request
	if a.bound[node]+request > a.capacity[node] {
		return ErrConflict
	}
	if err := bind(); err != nil {
		return err
	}
	a.bound[node] += request
	return nil
}

// Release takes away what a pod has that has ended.
func (a *Agent) Release(node int, request int64) { a.bound[node] -= request }
