// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// Nodes is the nodes of a cluster, and what they are to all workloads alike. Each has a
// small number by which everything else knows it. The number of a node that is gone is
// given to another one.
//
// Two versions tell others what to look at again. The structure moves when a node comes
// or goes, is relabelled, or becomes ready or not, soft, or larger, or ends otherwise: then topologies are built anew. The
// version moves with every change of a node, and changes has what those were.
type Nodes struct {
	// Weight says where a node is among those that tie: lower weights come first, and then names. Nil is the order of names. It is for
	// before there are nodes, and is asked once for each: nodes are sorted anew whenever one comes or goes.
	Weight func(name string) uint64
	all    []nodeInfo
	index  map[string]int32
	free   []int32
	// sorted has all nodes in order; unsorted says that one has come or gone since.
	sorted   []int32
	unsorted bool

	structure uint64
	version   uint64
	changes   []change // the last of them: that of version is the last
}

type nodeInfo struct {
	name   string
	weight uint64 // see Weight
	Facts
	// changed is the version of its last change.
	changed uint64
}

// Facts are what is known of a node.
type Facts struct {
	Usage placement.Usage
	// Pods is how many pods there are, for people to read.
	Pods int64
	// Unready: see placement.Node.
	Unready bool
	// Soft names what makes the node soft to pods that do not tolerate it, "" for nothing: see
	// placement.Node and Feasibility.Tolerates.
	Soft string
	// Ends is the hour in which the node ends, 0 for none: see placement.Node.
	Ends int32
}

// change is one change of a node, with what has been added to its usage.
type change struct {
	node int32
	by   placement.Usage
}

// NewNodes returns no nodes, with room for some.
func NewNodes(room int) *Nodes {
	return &Nodes{all: make([]nodeInfo, 0, room), sorted: make([]int32, 0, room), index: make(map[string]int32, room)}
}

// Len is the number of nodes.
func (n *Nodes) Len() int { return len(n.index) }

// Find returns the number of a node.
func (n *Nodes) Find(name string) (id int32, known bool) {
	id, known = n.index[name]
	return id, known
}

// Name returns the name of a node.
func (n *Nodes) Name(id int32) string { return n.all[id].name }

// Names returns the names of all nodes, in order.
func (n *Nodes) Names() []string {
	names := make([]string, 0, len(n.index))
	for _, id := range n.All() {
		names = append(names, n.all[id].name)
	}
	return names
}

// Facts returns what is known of a node.
func (n *Nodes) Facts(id int32) Facts { return n.all[id].Facts }

// Structure identifies what topologies are built from.
func (n *Nodes) Structure() uint64 { return n.structure }

// Set adds a node, or replaces what is known of it. The filters' answer for it is
// taken back, whatever has changed: pods are what they look at.
func (n *Nodes) Set(name string, facts Facts) (id int32) {
	id, known := n.index[name]
	if !known {
		id = n.add(name)
	}
	is := &n.all[id]
	by := facts.Usage.Sub(is.Usage)
	rebuild := !known || is.Unready != facts.Unready || is.Soft != facts.Soft || is.Ends != facts.Ends || by.CPU.Allocatable != 0 || by.Memory.Allocatable != 0
	is.Facts = facts
	n.note(change{id, by})
	if rebuild {
		n.restructure()
	}
	return id
}

// restructure has topologies built anew. What has changed until then is of no use to the
// new ones, and others look at all nodes once.
func (n *Nodes) restructure() {
	n.structure++
	n.changes = n.changes[:0]
}

// Relabel records that a node has other values than it had.
func (n *Nodes) Relabel() { n.restructure() }

// Remove forgets a node. An unknown name is no error: nodes go when they please.
func (n *Nodes) Remove(name string) {
	id, known := n.index[name]
	if !known {
		return
	}
	delete(n.index, name)
	n.unsorted = true
	n.all[id] = nodeInfo{}
	n.free = append(n.free, id)
	n.note(change{node: id})
	n.restructure()
}

func (n *Nodes) add(name string) (id int32) {
	if last := len(n.free) - 1; last >= 0 {
		id, n.free = n.free[last], n.free[:last]
	} else {
		id = int32(len(n.all))
		n.all = append(n.all, nodeInfo{})
	}
	n.all[id].name = name
	if n.Weight != nil {
		n.all[id].weight = n.Weight(name)
	}
	n.index[name] = id
	if last := len(n.sorted) - 1; n.unsorted || last >= 0 && n.compare(n.sorted[last], id) > 0 {
		n.unsorted = true
	} else {
		n.sorted = append(n.sorted, id) // most come in order
	}
	return id
}

// All returns all nodes in order. It must not be altered.
func (n *Nodes) All() []int32 {
	if n.unsorted {
		n.unsorted = false
		n.sorted = slices.AppendSeq(n.sorted[:0], maps.Values(n.index))
		slices.SortFunc(n.sorted, n.compare)
	}
	return n.sorted
}

func (n *Nodes) compare(a, b int32) int {
	if c := cmp.Compare(n.all[a].weight, n.all[b].weight); c != 0 {
		return c
	}
	return strings.Compare(n.all[a].name, n.all[b].name)
}

// maxChanges bounds the changes that are kept beside as many as there are nodes: who has
// missed more looks at all nodes, which is then no more work.
const maxChanges = 256

func (n *Nodes) note(c change) {
	n.version++
	n.all[c.node].changed = n.version
	n.changes = append(n.changes, c)
	if most := len(n.index) + maxChanges; len(n.changes) > 2*most {
		n.changes = slices.Delete(n.changes, 0, len(n.changes)-most)
	}
}

// since returns the changes after a version, or false if some of them are forgotten.
func (n *Nodes) since(version uint64) ([]change, bool) {
	missed := n.version - version
	if missed > uint64(len(n.changes)) {
		return nil, false
	}
	return n.changes[uint64(len(n.changes))-missed:], true
}
