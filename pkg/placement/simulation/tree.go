// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulation decides for one revision of one workload alone: for tests, and for
// whoever wants to know where pods would go. It puts together the parts of package tree,
// which a scheduler shares between all workloads.
package simulation

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Tree is the nodes of a cluster as one revision sees them. What the filters say of a node
// is remembered until the node changes. It is not safe for concurrent use.
type Tree struct {
	// Request is what each pod that Add and Place count requests of a node, and that is placed.
	Request placement.Usage

	levels []level.Level
	rule   placement.Faults
	nodes  *tree.Nodes
	known  []nodeInfo // by the number of the node
	view   tree.View
}

// nodeInfo is all that is known of a node.
type nodeInfo struct {
	placement.Node
	// asked: the filters' last answer is fits, also when they are to be asked again. Set forgets it.
	asked, fits bool
}

// Ranked is a node's position among all that fit: see tree.View.Rank.
type Ranked struct {
	Name  string
	Class int
}

// New returns a tree of nodes over the levels, first level first. The levels must
// be valid in the sense of level.Validate; none at all spreads over nodes only. Until
// SetRule says otherwise one failure marks a node faulty, and nothing is half-open.
func New(levels []level.Level, nodes ...placement.Node) *Tree {
	t := &Tree{levels: levels, nodes: tree.NewNodes(len(nodes)), known: make([]nodeInfo, 0, len(nodes))}
	t.view.Feasibility = tree.NewFeasibility(t.nodes)
	t.build()
	for i := range nodes {
		t.Set(nodes[i])
	}
	return t
}

// build makes the parts that depend on the structure of the nodes.
func (t *Tree) build() {
	t.view.Topology = tree.NewTopology(t.nodes, t.levels, func(node int32, l int) placement.Value { return t.known[node].Values[l] })
	t.view.Tally = tree.NewTally(t.view.Topology)
	t.view.Tally.SetRule(t.rule)
	for _, id := range t.nodes.All() {
		t.count(id)
	}
}

// count has the tally show a node as it is known.
func (t *Tree) count(id int32) {
	n := &t.known[id]
	t.view.Tally.Set(id, n.Tally.Revision, n.Tally.Workload, n.Record)
}

// View returns the tree as it is now.
func (t *Tree) View() tree.View {
	if t.view.Topology.Stale() {
		t.build()
	}
	t.view.Topology.Refresh()
	t.view.Feasibility.Refresh()
	t.view.Feasibility.Request = t.Request
	return t.view
}

// SetRule changes how records count.
func (t *Tree) SetRule(rule placement.Faults) {
	t.rule = rule
	t.view.Tally.SetRule(rule)
}

// Len is the number of nodes in the tree.
func (t *Tree) Len() int { return len(t.View().Topology.Nodes()) }

// Tally returns what the tree counts on a node, and whether the node is in it.
func (t *Tree) Tally(name string) (placement.Tally, bool) {
	id, known := t.nodes.Find(name)
	if !known || !t.View().Topology.Has(id) {
		return placement.Tally{}, false
	}
	return t.known[id].Tally, true
}

// Set adds a node, or replaces all that is known of it: values, tally, usage, record,
// readiness. The filters' answer for it is forgotten. A node that a level leaves
// out because it lacks the property (level.Exclude) is not in the tree.
func (t *Tree) Set(n placement.Node) {
	id := t.tell(&n)
	if len(t.known) <= int(id) {
		t.known = append(t.known, nodeInfo{})
	}
	if !slices.Equal(t.known[id].Values, n.Values) {
		t.nodes.Relabel()
	}
	t.known[id] = nodeInfo{Node: n}
	if !t.view.Topology.Stale() {
		t.count(id)
	}
}

func (t *Tree) tell(n *placement.Node) (id int32) {
	facts := tree.Facts{Usage: n.Usage, Pods: n.Tally.All, Unready: n.Unready, Ends: n.Ends}
	if n.Soft {
		facts.Soft = "soft"
	}
	return t.nodes.Set(n.Name, facts)
}

// Remove forgets a node, with its pods. An unknown name is no error.
func (t *Tree) Remove(name string) {
	if id, found := t.nodes.Find(name); found {
		t.known[id] = nodeInfo{} // its number is given to another node
		// The topology is stale then, and the next View builds it and the tally anew.
		t.nodes.Remove(name)
	}
}

// SetRecord replaces a node's record. The filters' answer for the node holds: they
// do not look at records.
func (t *Tree) SetRecord(name string, r placement.Record) {
	if id, known := t.nodes.Find(name); known {
		t.known[id].Record = r
		t.View().Tally.SetRecord(id, r)
	}
}

// Add counts pods that came to a node or, negative, went from it. Those of the
// revision are unproven. The filters are asked about the node again: a pod more
// or less is what they look at.
func (t *Tree) Add(name string, d placement.Tally) {
	if id, known := t.nodes.Find(name); known {
		t.add(id, d)
	}
}

func (t *Tree) add(id int32, d placement.Tally) {
	n := &t.known[id]
	n.Tally = n.Tally.Add(d)
	n.Unproven = max(0, n.Unproven+d.Revision)
	for range d.All {
		n.Usage = n.Usage.Add(t.Request)
	}
	for range -d.All {
		n.Usage = n.Usage.Sub(t.Request)
	}
	t.tell(&n.Node)
	v := t.View()
	if n.asked {
		t.note(id, n.fits)
		v.Feasibility.Recheck(id)
	}
	t.count(id)
}

// note keeps the filters' answer for a node.
func (t *Tree) note(id int32, fits bool) {
	t.known[id].asked, t.known[id].fits = true, fits
	if fits {
		t.view.Feasibility.Allow(id)
	} else {
		t.view.Feasibility.Refuse(id, 0)
	}
}

// Recheck has the filters asked about a node again.
func (t *Tree) Recheck(name string) {
	if id, known := t.nodes.Find(name); known {
		t.View().Feasibility.Recheck(id)
	}
}

// RecheckAll has them asked about all nodes again.
func (t *Tree) RecheckAll() {
	for _, name := range t.nodes.Names() {
		t.Recheck(name)
	}
}

// Next decides one pod: see tree.View.Next.
func (t *Tree) Next(fits placement.Fits) (string, bool) {
	id, ok := t.View().Next(t.fit(fits))
	if !ok {
		return "", false
	}
	return t.nodes.Name(id), true
}

func (t *Tree) fit(fits placement.Fits) tree.Fit {
	return func(node int32) (bool, int) {
		n := &t.known[node]
		n.asked, n.fits = true, fits(n.Name)
		return n.fits, 0
	}
}

// Place decides a batch of k pods, counting each: the nodes, in the order in which
// they were chosen. They are fewer than k if the room ends.
func (t *Tree) Place(k int, fits placement.Fits) []string {
	var placed []string
	for range k {
		id, ok := t.View().Next(t.fit(fits))
		if !ok {
			break
		}
		placed = append(placed, t.nodes.Name(id))
		t.add(id, placement.Tally{Revision: 1, Workload: 1, All: 1})
	}
	return placed
}

// Rank asks the filters about all nodes, and ranks those that fit: see tree.View.Rank.
func (t *Tree) Rank(fits placement.Fits) []Ranked {
	v := t.View()
	for _, id := range v.Topology.Nodes() {
		if !v.Feasibility.Allowed(id) && !v.Feasibility.Refused(id) {
			t.note(id, fits(t.nodes.Name(id)))
		}
	}
	var all []Ranked
	for _, r := range v.Rank(true) {
		all = append(all, Ranked{t.nodes.Name(r.Node), r.Class})
	}
	return all
}

// Misplaced counts by level: see tree.View.Misplaced.
func (t *Tree) Misplaced() []int64 { return t.View().Misplaced() }

// Worst is the node that a pod should leave first: see tree.View.Worst.
func (t *Tree) Worst() (string, bool) {
	id, ok := t.View().Worst()
	if !ok {
		return "", false
	}
	return t.nodes.Name(id), true
}

// First returns the branch of the first level that a node is in: see tree.Topology.First.
func (t *Tree) First(name string) (value string, share int32, ok bool) {
	id, known := t.nodes.Find(name)
	if !known {
		return "", 0, false
	}
	return t.View().Topology.First(id)
}

// Explain decides one pod like Next, and says why.
func (t *Tree) Explain(fits placement.Fits) drawing.Decision {
	return drawing.Explain(t.View(), t.fit(fits))
}

// Decision says how a node stands to what else could be chosen: see tree.View.Decision.
func (t *Tree) Decision(name string) []decision.Step {
	id, known := t.nodes.Find(name)
	if !known {
		return nil
	}
	return t.View().Decision(id)
}

// String draws the tree.
func (t *Tree) String() string { return drawing.Tree(t.View()) }

// Validate checks the invariants of all parts.
func (t *Tree) Validate() error { return t.View().Validate() }
