// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"k8s.io/utils/lru"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// maxTrees bounds the trees that are kept. A tree of 10,000 nodes takes some
// 3 MB; one that was dropped is built again from the census when its next pod comes.
const maxTrees = 32

// batch is the pods that share a tree: of one workload and revision, with the same levels.
type batch struct {
	id     clusterview.Identity
	levels []level.Level
}

// batchKey is a batch as a key.
type batchKey struct {
	workload clusterview.Workload
	revision string
	levels   string
}

func (b batch) key() batchKey {
	return batchKey{workload: b.id.Workload, revision: b.id.Revision, levels: level.Format(b.levels)}
}

// forest is the trees of the batches that pods were placed of most recently, and
// the census that they are kept true by. It is not safe for concurrent use.
type forest struct {
	census *clusterview.Census
	trees  *lru.Cache // of batchKey to *planted
	// countAll counts the pods of all revisions alike, as the seeds do.
	countAll bool
}

// planted is a tree and the version of the census it shows.
type planted struct {
	tree    *tree.Tree
	version uint64
}

func newForest(identifier *clusterview.Identifier, countAll bool) *forest {
	return &forest{census: clusterview.NewCensus(identifier), trees: lru.New(maxTrees), countAll: countAll}
}

// tree returns the tree of a batch as the census has it now.
func (f *forest) tree(b batch) *tree.Tree {
	p := f.plant(b)
	departures := f.census.Each(p.version, b.id, b.levels, func(n placement.Node) {
		if f.countAll {
			n.Tally.Revision = n.Tally.Workload
		}
		p.tree.Set(n)
	})
	if departures {
		p.tree.Keep(f.census.Has)
	}
	p.version = f.census.Version()
	return p.tree
}

func (f *forest) plant(b batch) *planted {
	key := b.key()
	if p, ok := f.trees.Get(key); ok {
		return p.(*planted)
	}
	p := &planted{tree: tree.New(b.levels)}
	f.trees.Add(key, p)
	return p
}

// add counts pods on a node in the tree of a batch, if there is one.
func (f *forest) add(b batch, node string, d placement.Tally) {
	if p, ok := f.trees.Get(b.key()); ok {
		p.(*planted).tree.Add(node, d)
	}
}

// takeBack undoes add, and has the node counted afresh at the next decision. The
// snapshot may have said the same in the meantime: a pod that is deleted while it
// is being bound is gone from it before its reservation is taken back. The node's
// generation then does not move again, and the pod would be missing twice for as
// long as nothing else happens on the node.
func (f *forest) takeBack(b batch, node string, d placement.Tally) {
	f.add(b, node, placement.Tally{}.Sub(d))
	f.census.Doubt(node)
}
