// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
	"github.com/espalier-scheduler/espalier/internal/idlecache"
	"github.com/espalier-scheduler/espalier/internal/scaledown"
	"github.com/espalier-scheduler/espalier/pkg/placement/nesting"
	"github.com/espalier-scheduler/espalier/pkg/placement/ownership"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

const (
	// maxTopologies bounds the lists of levels in use. A topology of 5,000 nodes takes some
	// 300 KiB, and a millisecond to build.
	maxTopologies = 64
	// maxNeeds bounds the classes of needs of which the filters' answers are kept: some
	// 10 KiB each on 5,000 nodes. Most clusters have many workloads and few sizes of pods.
	// More that fit nowhere, and are tried in turn, are filtered on all nodes again.
	maxNeeds = 256
	// maxRevisions bounds the tallies of one workload, so that all of them take room for a
	// few times its pods, whatever their labels say. Most have one, and two in a rollout.
	maxRevisions = 8
)

// batch is the pods that share a tally: of one workload and revision, with the same levels.
type batch struct {
	id     clusterview.Identity
	levels clusterview.Levels
	// countsAs is what its pods count as: among those that their constraints select, where these are of other
	// workloads too; and for all owners of a workload alike who have no older revision in it, and no failures.
	countsAs clusterview.Identity
	// shared: the counts are those of others as well, so that no record is looked at. Where there are records of the
	// pods' own revision, own is its identity, and the counts are shared with nobody.
	shared bool
	own    clusterview.Identity
}

// batchKey is a batch as a key.
type batchKey struct {
	workload clusterview.Workload
	owner    string
	revision string
	levels   string
	shared   bool
	own      clusterview.Identity
}

func (b batch) key() batchKey {
	return batchKey{workload: b.countsAs.Workload, owner: b.countsAs.Owner, revision: b.countsAs.Revision, levels: b.levels.Key(), shared: b.shared, own: b.own}
}

// trees is what all decisions of a profile share: the index, a topology for each list of
// levels, the filters' answers for each class of needs; and the tallies of the
// revisions that pods were placed of lately. It is not safe for concurrent use.
//
// A placement changes the index alone, by the scheduler's next snapshot.
// Everything else follows from there when it is used.
type trees struct {
	identifier *clusterview.Identifier
	// changes is nil if it is not known which nodes have changed.
	changes    podcount.Changes
	index      *podcount.Index
	replica    string // see HashTies
	topologies *idlecache.Cache[string, *topology]
	filtered   *idlecache.Cache[clusterview.Needs, *feasibility.Class]
	tallies    map[clusterview.Workload]*idlecache.Cache[batchKey, *tally]
	sets       appslisters.StatefulSetLister
	costs      *scaledown.Cache
	// countAll counts the pods of all revisions alike, as the seeds do.
	countAll bool
	// onUse, if set, is called when something is kept that may become idle.
	onUse func()
}

// topology is that of a list of levels, with a sentence on each of them that decides nothing.
type topology struct {
	*tree.Topology
	undecided []string
}

func newTrees(identifier *clusterview.Identifier, sets appslisters.StatefulSetLister, countAll bool) *trees {
	t := &trees{identifier: identifier, sets: sets, countAll: countAll}
	t.reset()
	return t
}

// reset drops all that is known.
func (t *trees) reset() {
	t.index = podcount.NewIndex(t.identifier)
	t.index.Nodes().Weight = ownership.Weights(t.replica)
	if t.changes != nil {
		t.index.Follow(t.changes)
	}
	index := t.index
	t.topologies = idlecache.New[string](maxTopologies, func(t *topology) {
		index.Unwatch(t.Levels())
		t.Clear()
	})
	t.filtered = idlecache.New[clusterview.Needs](maxNeeds, func(*feasibility.Class) {})
	t.tallies = make(map[clusterview.Workload]*idlecache.Cache[batchKey, *tally])
	t.costs = scaledown.NewCache(t.sets)
}

func (t *trees) follow(changes podcount.Changes) {
	t.changes = changes
	t.index.Follow(changes)
}

// topology returns that of levels as the nodes are now.
func (t *trees) topology(levels clusterview.Levels) *topology {
	key := levels.Key()
	is, ok := t.topologies.Get(key)
	if !ok || is.Stale() {
		nodes := t.index.Nodes()
		n := nesting.New(levels.List, nodes.All(), t.index.Values(levels.List))
		if levels.InAnyOrder() {
			n.Sort()
		}
		is = &topology{tree.NewTopology(nodes, n.Levels(), t.index.Values(n.Levels())), n.Undecided()}
		t.index.Watch(n.Levels())
		t.topologies.Put(key, is)
		t.used()
	}
	is.Refresh()
	return is
}

// hasTopology reports whether the topology of levels need not be built.
func (t *trees) hasTopology(levels clusterview.Levels) bool {
	is, ok := t.topologies.Peek(levels.Key())
	return ok && !is.Stale()
}

// answers returns the filters' answers for pods with such needs; nothing yet to those
// with needs "", whose answers do not outlive the cycle.
func (t *trees) answers(needs clusterview.Needs, pod *corev1.Pod) *feasibility.Class {
	f, ok := t.filtered.Get(needs)
	if !ok || needs == "" {
		f = feasibility.NewClass(t.index.Nodes(), pod)
	}
	if !ok && needs != "" {
		t.filtered.Put(needs, f)
		t.used()
	}
	f.Refresh()
	return f
}

// tally returns that of a batch, brought up to date. A workload that stands nowhere and
// has failed nowhere sees all nodes alike: bare pods and Jobs of one pod need none of their own.
func (t *trees) tally(id clusterview.Identity, levels clusterview.Levels, faults clusterview.Faults) *tally {
	b := t.batch(id, levels, faults)
	if b.shared {
		faults = nil // there are none, and those of another owner to come are not of all
	}
	key := b.key()
	ofWorkload := t.tallies[b.countsAs.Workload]
	if ofWorkload != nil {
		if is, ok := ofWorkload.Get(key); ok {
			is.refresh(t, faults)
			return is
		}
	}
	is := &tally{batch: b}
	is.refresh(t, faults)
	if !t.index.Counts(b.countsAs.Workload) && !is.faultsSeen.recorded {
		return is
	}
	if ofWorkload == nil {
		t.evictFormer(b)
		ofWorkload = idlecache.New[batchKey](maxRevisions, func(*tally) {})
		t.tallies[b.countsAs.Workload] = ofWorkload
	}
	ofWorkload.Put(key, is)
	t.used()
	return is
}

// evictFormer evicts the tallies of what a batch counted as before its selector came to select pods of others, or ceased to: the same
// pods would be counted as misplaced twice until they are idle. It evicts those under selectors that the index has evicted
// too, which bounds them as the index does.
func (t *trees) evictFormer(b batch) {
	switch {
	case b.countsAs.Workload != b.id.Workload:
		delete(t.tallies, b.id.Workload)
	case b.levels.Selector != nil:
		delete(t.tallies, b.levels.Selector.Workload())
		return
	}
	maps.DeleteFunc(t.tallies, func(w clusterview.Workload, _ *idlecache.Cache[batchKey, *tally]) bool {
		return w.Kind == clusterview.KindSelector && !t.index.Counts(w)
	})
}

// batch returns that of a pod.
func (t *trees) batch(id clusterview.Identity, levels clusterview.Levels, faults clusterview.Faults) batch {
	b := batch{id: id, levels: levels, countsAs: t.index.Under(id, levels.Selector)}
	merged := t.index.Merged(b.countsAs)
	switch {
	case merged == id:
	case !recorded(faults, id):
		b.countsAs, b.shared = merged, true
	case b.countsAs != id:
		b.own = id
	}
	return b
}

// recorded reports whether there is a record of a revision on any node.
func recorded(faults clusterview.Faults, of clusterview.Identity) bool {
	if faults == nil {
		return false
	}
	nodes, anew, _ := faults.Changed(of, 0)
	return anew || len(nodes) > 0
}

func (t *trees) used() {
	if t.onUse != nil {
		t.onUse()
	}
}

// all returns the tallies that are kept.
func (t *trees) all() []*tally {
	var all []*tally
	for _, ofWorkload := range t.tallies {
		all = slices.AppendSeq(all, ofWorkload.Values())
	}
	return all
}
