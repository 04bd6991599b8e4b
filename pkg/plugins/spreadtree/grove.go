// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import "container/list"

// grove is the trees that are kept, in the order of their last use. It is not safe
// for concurrent use.
//
// The least recently used cache of k8s.io/utils was rejected: it does not show its
// oldest member, so that nothing can be dropped for its age.
type grove struct {
	byKey  map[batchKey]*list.Element
	recent *list.List // of *planted, the one used last in front
	// season numbers the visits of fellIdle.
	season uint64
}

func newGrove() *grove { return &grove{byKey: make(map[batchKey]*list.Element), recent: list.New()} }

// Len is the number of trees.
func (g *grove) Len() int { return g.recent.Len() }

// Get returns a tree, and notes that it has been used.
func (g *grove) Get(key batchKey) (*planted, bool) {
	e, ok := g.byKey[key]
	if !ok {
		return nil, false
	}
	g.recent.MoveToFront(e)
	p := e.Value.(*planted)
	p.season = g.season
	return p, true
}

// Add keeps a tree that it has not.
func (g *grove) Add(key batchKey, p *planted) {
	p.key, p.season = key, g.season
	g.byKey[key] = g.recent.PushFront(p)
}

// all returns the trees, the one used last first. None of them is used by it.
func (g *grove) all() []*planted {
	all := make([]*planted, 0, g.recent.Len())
	for e := g.recent.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*planted))
	}
	return all
}

// RemoveOldest fells the tree that was not needed for longest.
func (g *grove) RemoveOldest() {
	e := g.recent.Back()
	delete(g.byKey, e.Value.(*planted).key)
	g.recent.Remove(e)
}

// fellIdle fells the trees that were not used since it was called before.
func (g *grove) fellIdle() {
	for e := g.recent.Back(); e != nil && e.Value.(*planted).season < g.season; e = g.recent.Back() {
		g.RemoveOldest()
	}
	g.season++
}
