// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// maxTreeNodes bounds the trees that are kept, by the nodes in all of them: some
// 300 bytes each, and as many as 100 batches on 5,000 nodes, beside the trees that they
// share. One tree fewer than there are batches taking turns, and each would be built anew
// for every pod.
const maxTreeNodes = 600_000

// batch is the pods that share a tree: of one workload and revision, with the same levels.
type batch struct {
	id     clusterview.Identity
	levels []level.Level
}

// batchKey is a batch as a key. With a batch's levels alone it is that of the tree
// that all workloads share that stand nowhere yet.
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
//
// A batch has a tree of its own from its second pod on. To the first the cluster looks
// as to any other workload of which no pod counts, so that these share one tree for
// each list of levels: bare pods and Jobs of one pod need no other, ever.
type forest struct {
	identifier *clusterview.Identifier
	// changes is nil if nobody says which nodes have changed.
	changes clusterview.Changes
	census  *clusterview.Census
	trees   *grove
	// said is by versions of the census, and goes with it.
	said library
	// countAll counts the pods of all revisions alike, as the seeds do.
	countAll bool
	maxNodes int
	// onPlant is told of every new tree, if it is set.
	onPlant func()
}

// planted is a tree, the version of the census it shows, what it heard of faults, and
// what its filters' answers are worth.
type planted struct {
	tree    *tree.Tree
	version uint64
	heard   heard
	memory  memory
	key     batchKey
	season  uint64 // of the grove, when it was used last
	// offshoot: it was cloned from the shared tree, and has not been told of its workload.
	offshoot bool

	retold  bool // of all nodes, when it was brought up to date last
	counted bool // count is of the tree as it is
	count   misplaced
}

func newForest(identifier *clusterview.Identifier, countAll bool) *forest {
	f := &forest{identifier: identifier, trees: newGrove(), countAll: countAll, maxNodes: maxTreeNodes}
	f.countAnew()
	return f
}

// countAnew drops the census, which no tree may show any more.
func (f *forest) countAnew() {
	f.census, f.said = clusterview.NewCensus(f.identifier), newLibrary()
	if f.changes != nil {
		f.census.Follow(f.changes)
	}
}

func (f *forest) follow(changes clusterview.Changes) {
	f.changes = changes
	f.census.Follow(changes)
}

// tree returns the tree of a batch as the census and the faults have it now.
func (f *forest) tree(b batch, faults clusterview.Faults) *planted {
	b = f.aboveNodes(b)
	p := f.plant(b, faults)
	fared := p.hear(b.id, faults)
	p.retold, p.counted = p.version == 0, false
	tell := func(n placement.Node) {
		if f.countAll {
			n.Tally.Revision = n.Tally.Workload
		}
		if p.heard.recorded {
			n.Record = faults.Record(b.id, n.Name)
		}
		p.tree.Set(n)
	}
	departures := f.census.Each(p.version, b.id, b.levels, tell)
	if p.offshoot {
		// What it shows of these is what a workload sees that stands nowhere.
		f.census.EachOf(b.id, b.levels, tell)
		p.offshoot = false
	}
	for _, name := range fared {
		p.tree.SetRecord(name, faults.Record(b.id, name))
	}
	if departures {
		p.tree.Keep(f.census.Has)
	}
	p.version = f.census.Version()
	f.thin(p.tree.Len())
	return p
}

// aboveNodes is a batch without a last level that is its nodes themselves.
func (f *forest) aboveNodes(b batch) batch {
	b.levels = clusterview.AboveNodes(b.levels, f.census.HostsAreNodes())
	return b
}

// thin fells the trees that were not needed for longest, until those that are left
// have no more nodes than they may. All are taken to be of one size.
func (f *forest) thin(nodes int) {
	for f.trees.Len() > 1 && f.trees.Len()*nodes > f.maxNodes {
		f.trees.RemoveOldest()
	}
}

// plant returns the tree that shows the cluster to a batch, not yet as it is now.
func (f *forest) plant(b batch, faults clusterview.Faults) *planted {
	if p, ok := f.trees.Get(b.key()); ok {
		return p
	}
	key := b.key()
	if f.standsNowhere(b) && !hasRecords(b.id, faults) {
		key = batchKey{levels: key.levels}
		if p, ok := f.trees.Get(key); ok {
			return p
		}
	}
	p := f.seedling(b, faults)
	f.trees.Add(key, p)
	if f.onPlant != nil {
		f.onPlant()
	}
	return p
}

// seedling returns a new tree for a batch: an offshoot of the one that all share, if there
// is one. It shows all nodes but those on which the batch's workload stands.
func (f *forest) seedling(b batch, faults clusterview.Faults) *planted {
	shared, ok := f.trees.Get(batchKey{levels: b.key().levels})
	if !ok {
		p := &planted{tree: tree.New(b.levels)}
		if !clusterview.AnyExcludes(b.levels) { // else it may be of few nodes, and is counted as that
			p.tree.Grow(f.census.Len())
		}
		return p
	}
	p := &planted{tree: shared.tree.Clone(), version: shared.version, memory: shared.memory, offshoot: true}
	p.memory.passing = slices.Clone(shared.memory.passing)
	p.heard.told = faults != nil // there are no records in it
	return p
}

// shared reports that a tree is not of one batch.
func (p *planted) shared() bool { return p.key == batchKey{levels: p.key.levels} }

// standsNowhere reports that no pod is known of a batch by which any node would look
// different to it than to a workload that has just been made.
func (f *forest) standsNowhere(b batch) bool { return !f.census.Counts(b.id.Workload) }

// add counts pods on a node in the tree of a batch, if it has one of its own. In the
// shared one they are none of the next batch's; that there is a pod more on the node
// is for the census to say, as to the trees of all other batches.
func (f *forest) add(b batch, node string, d placement.Tally) {
	if p, ok := f.trees.Get(f.aboveNodes(b).key()); ok {
		p.tree.Add(node, d)
		p.counted = false
	}
}
