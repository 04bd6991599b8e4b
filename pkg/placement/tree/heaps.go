// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "container/heap"

// member is what a ranks holds: it knows where it stands, and what it stands before.
type member[T any] interface {
	compare(T) int
	stand(at int)
}

// ranks keeps its best member in front. A heap, not a sorted slice: a placement moves
// one node and one branch a level, by one step each.
type ranks[T member[T]] []T

func (r ranks[T]) Len() int           { return len(r) }
func (r ranks[T]) Less(i, j int) bool { return r[i].compare(r[j]) < 0 }
func (r ranks[T]) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].stand(i)
	r[j].stand(j)
}

// Push is for container/heap; use add.
func (r *ranks[T]) Push(x any) {
	m := x.(T)
	m.stand(len(*r))
	*r = append(*r, m)
}

// Pop is for container/heap; use drop.
func (r *ranks[T]) Pop() any {
	last := len(*r) - 1
	m := (*r)[last]
	clear((*r)[last:])
	*r = (*r)[:last]
	return m
}

func (r *ranks[T]) add(m T)     { heap.Push(r, m) }
func (r *ranks[T]) drop(at int) { heap.Remove(r, at) }
func (r *ranks[T]) fix(at int)  { heap.Fix(r, at) }
func (r *ranks[T]) init()       { heap.Init(r) }
