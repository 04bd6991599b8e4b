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

// maxTreeNodes bounds the trees that are kept, by the nodes in all of them: some
// 300 bytes each, and as many as 100 batches on 5,000 nodes. Fewer trees than there
// are batches taking turns would each be built anew for every pod.
const maxTreeNodes = 500_000

// batch is the pods that share a tree: of one workload and revision, with the same levels.
type batch struct {
	id     clusterview.Identity
	levels []level.Level
}

// batchKey is a batch as a key.
type batchKey struct {
	workload clusterview.Workload
	owner    string
	revision string
	levels   string
}

func (b batch) key() batchKey {
	return batchKey{workload: b.id.Workload, owner: b.id.Owner, revision: b.id.Revision, levels: level.Format(b.levels)}
}

// forest is the trees of the batches that pods were placed of most recently, and
// the census that they are kept true by. It is not safe for concurrent use.
type forest struct {
	census *clusterview.Census
	trees  *lru.Cache // of batchKey to *planted
	// countAll counts the pods of all revisions alike, as the seeds do.
	countAll bool
	maxNodes int
}

// planted is a tree, the version of the census it shows, and what its filters' answers
// are worth.
type planted struct {
	tree    *tree.Tree
	version uint64
	memory  memory
}

func newForest(identifier *clusterview.Identifier, countAll bool) *forest {
	return &forest{census: clusterview.NewCensus(identifier), trees: lru.New(0), countAll: countAll, maxNodes: maxTreeNodes}
}

// tree returns the tree of a batch as the census has it now.
func (f *forest) tree(b batch) *planted {
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
	f.thin(p.tree.Len())
	return p
}

// thin fells the trees that were not needed for longest, until those that are left
// have no more nodes than they may. All are taken to be of one size.
func (f *forest) thin(nodes int) {
	for f.trees.Len() > 1 && f.trees.Len()*nodes > f.maxNodes {
		f.trees.RemoveOldest()
	}
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
