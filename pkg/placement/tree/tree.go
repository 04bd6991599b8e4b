// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Tree is the spread tree of one workload's revision. The zero value is not
// usable; see New.
//
// Invariants, checked by Validate:
//   - every branch's tally and history are the sums of those of the ready nodes below it
//   - every heap is ordered, and every member knows its position; those of branches
//     are not ordered while the tree is unsettled
//   - a branch without nodes does not exist, except the root
type Tree struct {
	levels []level.Level
	rule   placement.Faults
	root   *branch
	nodes  map[string]*node
	// room is for nodes to come.
	room []node
	// unsettled says that branches may be out of place, which is mended before it
	// matters: a tree is planted, and changed as a whole, before it is asked anything.
	unsettled bool
	// ahead is set while NextAhead decides.
	ahead func(names []string)
}

// New returns an empty tree over the levels, first level first. The levels must
// be valid in the sense of level.Validate; none at all spreads over nodes only. Until
// SetRule says otherwise one failure marks a node faulty, and nothing is half-open.
func New(levels []level.Level) *Tree {
	t := &Tree{levels: levels, rule: placement.Faults{Threshold: 1}, nodes: make(map[string]*node), unsettled: true}
	t.root = &branch{tree: t, share: 1, below: fork{levels: levels}}
	return t
}

// SetRule changes how records count.
func (t *Tree) SetRule(rule placement.Faults) {
	rule.Threshold = max(1, rule.Threshold)
	if rule == t.rule {
		return
	}
	// All sums are taken back under the old rule, before any is made under the new one.
	t.root.eachNode(func(n *node) { n.account(-1) })
	t.rule = rule
	t.root.eachNode(func(n *node) {
		n.verdict = n.judge()
		n.account(+1)
	})
	t.root.renewAll()
	t.unsettled = true
}

// Grow makes room for n nodes in a tree that has none, in one piece. That they are so many
// is no promise. To be told of them takes two thirds of the time then (BenchmarkPlant).
func (t *Tree) Grow(n int) {
	if len(t.nodes) == 0 {
		t.nodes, t.room = make(map[string]*node, n), make([]node, n)
	}
}

// Len is the number of nodes in the tree.
func (t *Tree) Len() int { return len(t.nodes) }

// Tally returns what the tree counts on a node, and whether the node is in it.
func (t *Tree) Tally(name string) (placement.Tally, bool) {
	n, ok := t.nodes[name]
	if !ok {
		return placement.Tally{}, false
	}
	return n.Tally, true
}

// Set adds a node, or replaces all that is known of it: values, tally, record,
// readiness. What the filters said of it is forgotten. A node that a level leaves
// out because it lacks the property (level.Exclude) is removed.
func (t *Tree) Set(n placement.Node) {
	old, known := t.nodes[n.Name]
	switch {
	case t.excludes(n.Values):
		if known {
			t.remove(old)
		}
	case known && sameValues(old.Values, n.Values):
		old.change(func() { old.Node, old.answer, old.said = n, unasked, unasked })
	default:
		if known {
			t.remove(old)
		}
		t.insert(n)
	}
}

// Remove takes a node out of the tree, with its pods. An unknown name is no error:
// nodes go when they please.
func (t *Tree) Remove(name string) {
	if n, ok := t.nodes[name]; ok {
		t.remove(n)
	}
}

// SetRecord replaces a node's record. What the filters said of the node holds: they
// do not look at records.
func (t *Tree) SetRecord(name string, r placement.Record) {
	if n, ok := t.nodes[name]; ok && n.Record != r {
		n.change(func() { n.Record = r })
	}
}

// Add counts pods that came to a node or, negative, went from it. Those of the
// revision are unproven. What the filters said of the node is forgotten: a pod more
// or less is what they look at.
func (t *Tree) Add(name string, d placement.Tally) {
	if n, ok := t.nodes[name]; ok {
		t.add(n, d)
	}
}

// Recheck forgets what the filters said of a node.
func (t *Tree) Recheck(name string) {
	if n, ok := t.nodes[name]; ok {
		n.change(func() { n.answer = unasked })
	}
}

// RecheckAll forgets what the filters said of any node.
func (t *Tree) RecheckAll() {
	if t.root.recheck() {
		t.unsettled = true
	}
}

// settle puts all branches in their places. Whatever looks at the order of branches
// has to see to it first.
func (t *Tree) settle() {
	if t.unsettled {
		t.unsettled = false
		t.root.settleAll()
	}
}

func (t *Tree) add(n *node, d placement.Tally) {
	n.change(func() {
		n.Tally, n.answer = n.Tally.Add(d), unasked
		n.Unproven = max(0, n.Unproven+d.Revision)
	})
}

// insert hangs a node under the branches of its values, growing those that are missing.
func (t *Tree) insert(is placement.Node) {
	n := t.newNode()
	n.Node = is
	b := t.root
	for !b.isLeaf() {
		b = b.child(n.Values)
	}
	n.leaf = b
	t.nodes[n.Name] = n
	n.verdict = n.judge()
	n.account(+1)
	n.queue()
	b.nodes.add(n)
	b.settle()
}

// newNode returns a node that is nothing yet.
func (t *Tree) newNode() *node {
	if len(t.room) == 0 {
		return new(node)
	}
	n := &t.room[0]
	t.room = t.room[1:]
	return n
}

// remove takes a node off its leaf and prunes the branches it leaves empty.
func (t *Tree) remove(n *node) {
	b := n.leaf
	delete(t.nodes, n.Name)
	n.account(-1)
	b.nodes.drop(n)
	if n.queued {
		b.toAsk = slices.DeleteFunc(b.toAsk, func(q *node) bool { return q == n })
	}
	for b.parent != nil && b.nodes.len() == 0 && len(b.children) == 0 {
		parent := b.parent
		parent.prune(b)
		b = parent
	}
	b.settle()
}

func (t *Tree) excludes(values []placement.Value) bool {
	for i, l := range t.levels {
		if l.Missing == level.Exclude && values[i].Missing {
			return true
		}
	}
	return false
}

// sameValues compares where two sets of values hang a node: an empty value and a
// missing one share a branch.
func sameValues(a, b []placement.Value) bool {
	for i := range a {
		if a[i].Text != b[i].Text {
			return false
		}
	}
	return true
}

// Keep removes the nodes that stays does not want to keep.
func (t *Tree) Keep(stays func(name string) bool) {
	var gone []*node
	t.root.eachNode(func(n *node) {
		if !stays(n.Name) {
			gone = append(gone, n)
		}
	})
	for _, n := range gone {
		t.remove(n)
	}
}
