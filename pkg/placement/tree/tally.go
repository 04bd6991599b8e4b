// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/members"
)

// Tally is the pods of one revision over one topology: entries only for the nodes where
// its workload has pods or the revision a record, and for the branches of those. All
// other members of a group tie, and are not listed anywhere.
//
// Invariants, checked by Validate:
//   - the sums of every branch are those of the ready nodes below it
//   - a member of a group is listed if and only if an entry tells it from those without
//     any: in the class of its key, or apart
type Tally struct {
	topology *Topology
	rule     placement.Faults
	pods     map[int32]pods             // by node
	records  map[int32]placement.Record // by node; nil for most revisions, which have none
	branches map[int32]*branch
}

type pods struct{ Revision, Workload int32 }

// entry is what is known of a revision on one node.
type entry struct {
	pods
	placement.Record
}

func (t *Tally) entry(node int32) entry { return entry{t.pods[node], t.records[node]} }

// branch is what one tally has of a group.
type branch struct {
	sums
	classes classes
	// apart are the branches with failures below them: where they stand depends on which
	// of their nodes are open, and is found out when it is asked for. The others, and all
	// members of a leaf, are in classes.
	apart  members.Set
	listed members.Counted // in classes or apart
	// one has room for the class that most branches have no more than.
	one [1]class
}

// untouched is a branch of which nothing is known.
var untouched branch

// sums are what the nodes below a branch add up to, or one node's part in it.
type sums struct {
	// The pods on a node that is not ready are not in it, and neither is its record.
	revision, workload int32
	history            history
	// marked counts the nodes by which a branch may not stand as one of which nothing is known.
	marked int32
}

func (s *sums) add(o *sums, by int32) {
	s.revision += by * o.revision
	s.workload += by * o.workload
	s.marked += by * o.marked
	if o.history != (history{}) {
		s.history.add(&o.history, by)
	}
}

// NewTally returns one of a revision that is on no node. Until SetRule says otherwise one
// failure marks a node faulty, and nothing is half-open.
func NewTally(t *Topology) *Tally {
	return &Tally{
		topology: t, rule: placement.Faults{Threshold: 1},
		pods: make(map[int32]pods), branches: make(map[int32]*branch),
	}
}

// Topology returns the topology that the tally is over.
func (t *Tally) Topology() *Topology { return t.topology }

// SetRule changes how records count. It looks at all entries, where there is a record or successes come to count.
func (t *Tally) SetRule(rule placement.Faults) {
	rule.Threshold = max(1, rule.Threshold)
	before := t.rule
	if t.rule = rule; rule != before && (len(t.records) > 0 || rule.HalfOpen != before.HalfOpen) {
		*t = *t.over(t.topology)
	}
}

// over returns the tally over another topology of the same nodes.
func (t *Tally) over(topology *Topology) *Tally {
	moved := NewTally(topology)
	moved.rule = t.rule
	for node := range t.pods {
		moved.set(node, entry{}, t.entry(node))
	}
	for node := range t.records {
		moved.set(node, moved.entry(node), t.entry(node))
	}
	return moved
}

// Set replaces all that is known of a node.
func (t *Tally) Set(node int32, revision, workload int64, r placement.Record) {
	t.set(node, t.entry(node), entry{pods{int32(revision), int32(workload)}, r})
}

// SetPods replaces the pods of the revision and of the workload on a node.
func (t *Tally) SetPods(node int32, revision, workload int64) {
	was := t.entry(node)
	t.set(node, was, entry{pods{int32(revision), int32(workload)}, was.Record})
}

// SetRecord replaces a node's record.
func (t *Tally) SetRecord(node int32, r placement.Record) {
	was := t.entry(node)
	t.set(node, was, entry{was.pods, r})
}

// Pods returns what was said last of a node.
func (t *Tally) Pods(node int32) (revision, workload int64) {
	p := t.pods[node]
	return int64(p.Revision), int64(p.Workload)
}

func (t *Tally) set(node int32, was, e entry) {
	if was == e {
		return
	}
	put(t.pods, node, was.pods, e.pods)
	if t.records == nil && e.Record != was.Record {
		t.records = make(map[int32]placement.Record)
	}
	put(t.records, node, was.Record, e.Record)
	// Over a topology that is stale it is not known where the node is any more.
	if t.topology.Stale() || !t.topology.Has(node) {
		return
	}
	at := t.topology.where[node]
	g := &t.topology.groups[at.group]
	b := t.branch(at.group)
	before, after := t.part(node, &was), t.part(node, &e)
	if g.leaf {
		b.move(g, at.slot, t.nodeKey(node, &was), false, t.nodeKey(node, &e), false, t.topology.packs(g))
	} else {
		t.move(b, g, at.slot, &before, &after)
	}
	if before == after {
		t.prune(at.group, b)
		return
	}
	delta := after
	delta.add(&before, -1)
	for {
		old := b.sums
		b.add(&delta, +1)
		now, id := b.sums, at.group
		if t.prune(id, b); g.parent == none {
			return
		}
		at = place{g.parent, g.slot}
		g = &t.topology.groups[at.group]
		b = t.branch(at.group)
		t.move(b, g, at.slot, &old, &now)
	}
}

// put replaces what a map has of a node, and nothing is what it has of most.
func put[V comparable](in map[int32]V, node int32, was, is V) {
	var nothing V
	switch is {
	case was:
	case nothing:
		delete(in, node)
	default:
		in[node] = is
	}
}

// move puts a branch, as a member of a group, from what its sums were to what they are.
func (t *Tally) move(b *branch, g *group, slot int32, before, after *sums) {
	b.move(g, slot, branchKey(before, g.share(slot)), before.marked > 0, branchKey(after, g.share(slot)), after.marked > 0, t.topology.packs(g))
}

// branch returns what the tally has of a group.
func (t *Tally) branch(id int32) *branch {
	b, ok := t.branches[id]
	if !ok {
		b = &branch{}
		b.classes = b.one[:0]
		t.branches[id] = b
	}
	return b
}

// prune forgets a group of which nothing is known.
func (t *Tally) prune(id int32, b *branch) {
	if b.listed.Empty() && b.sums == (sums{}) {
		delete(t.branches, id)
	}
}

// part is a node's part in the sums of the branches above it.
func (t *Tally) part(node int32, e *entry) sums {
	if *e == (entry{}) || t.topology.nodes.all[node].Unready {
		return sums{}
	}
	s := sums{revision: e.Revision, workload: e.Workload}
	v := judge(&t.rule, &e.Record, false)
	s.marked = oneIf(v != verdict{} || t.rule.HalfOpen && e.Failures > 0)
	if t.rule.HalfOpen {
		s.history = historyOf(e)
	}
	return s
}

// nodeKey is the key of a node in a leaf.
func (t *Tally) nodeKey(node int32, e *entry) key {
	v := judge(&t.rule, &e.Record, t.topology.nodes.all[node].Unready)
	return key{health: v.health, failures: v.failures, revision: e.Revision, workload: e.Workload, share: 1, unforgiven: v.unforgiven}
}

// branchKey is the key of a branch, or of a node in its place, but for its health.
func branchKey(s *sums, share int32) key {
	return key{revision: s.revision, workload: s.workload, share: share, unforgiven: s.history.unforgiven}
}

func (b *branch) move(g *group, slot int32, from key, fromApart bool, to key, toApart, packs bool) {
	if from == to && fromApart == toApart {
		return
	}
	fresh := key{share: g.share(slot)}
	switch {
	case fromApart:
		b.apart.Remove(slot)
	case from != fresh:
		at, _ := b.classes.find(&from, packs)
		if b.classes[at].members.Remove(slot); b.classes[at].members.Empty() {
			b.classes = slices.Delete(b.classes, at, at+1)
		}
	}
	switch {
	case toApart:
		b.apart.Add(slot)
		b.listed.Add(slot)
	case to != fresh:
		at, found := b.classes.find(&to, packs)
		if !found {
			b.classes = slices.Insert(b.classes, at, class{key: to})
		}
		b.classes[at].members.Add(slot)
		b.listed.Add(slot)
	default:
		b.listed.Remove(slot)
	}
}
