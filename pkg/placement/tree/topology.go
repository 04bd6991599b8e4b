// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/members"
)

// Topology is the nodes as a tree over one list of levels. It is the same for all
// workloads that name these levels, and counts no pods.
//
// Paths are compressed, as in a radix tree: where all nodes of a branch have the same
// value at the next level, that level divides nothing and is left out; and a branch of
// one node is that node. So there are fewer groups than nodes, however many the levels
// are, and the values below a branch of one node are not even read.
//
// Its structure never changes: when that of the nodes does, another one is built
// (Stale). The load of its branches follows the nodes (refresh).
type Topology struct {
	levels    []level.Level
	nodes     *Nodes
	value     Values
	structure uint64
	groups    []group // the root first, and every other one after its parent
	where     []place // by node
	words     int32   // of a mask over all groups
	version   uint64  // of the nodes that the loads are of
}

// Values returns the value of a node at a level.
type Values func(node int32, level int) placement.Value

// group is one choice: between the branches of a level below one branch, or between the
// nodes of a leaf. Its members are in the order of their values, or names.
type group struct {
	parent, slot int32 // whose member it is, and which; the root has none
	division
	// leaf: the members are nodes, and compared as such. So are those of a last level that
	// spreads over one node each, such as that of host names.
	leaf bool
	// members are nodes, and other groups as the complement of their number.
	members []int32
	values  []string     // of the members; nil in a leaf
	shares  []int32      // of the members, 0 for a last resort; nil if all weigh 1
	byShare []shareClass // the largest share first; nil if all weigh 1
	usage   placement.Usage
	load    members.Loads
	sizes   []sizeClass // of members that are one node each, longest-lived first; nil where all are alike, or are branches
	mask    int32       // the first of its words in a mask
}

// shareClass is the members of one share. Members that are nil are all.
type shareClass struct {
	share   int32
	members *members.Set
}

// sizeClass is the members of one size that end in one hour.
type sizeClass struct {
	sooner  int32
	size    placement.Size
	members members.Set
}

// equalShares are the classes of a group all of whose members weigh 1.
var equalShares = []shareClass{{share: 1}}

// division is how nodes are divided: by a level, or, where others is set, by the values
// of that level that have no weight of their own. Below the last level is the leaf.
type division struct {
	level  int
	others bool
}

// place is where a node is a member: of which group, and which. In a topology that
// leaves the node out it is of none.
type place struct{ group, slot int32 }

const none = int32(-1)

// NewTopology builds the topology of nodes over levels, first level first. The levels must
// be valid in the sense of level.Validate; none at all make one leaf.
func NewTopology(nodes *Nodes, levels []level.Level, value Values) *Topology {
	t := &Topology{levels: levels, nodes: nodes, value: value, structure: nodes.structure, version: nodes.version}
	t.where = slices.Repeat([]place{{none, none}}, len(nodes.all))
	t.build(t.included(), division{}, none, none)
	for i := len(t.groups) - 1; i >= 0; i-- {
		t.groups[i].sum(t)
	}
	return t
}

// Levels returns the levels, first level first. They must not be altered.
func (t *Topology) Levels() []level.Level { return t.levels }

// Name returns the name of a node.
func (t *Topology) Name(node int32) string { return t.nodes.Name(node) }

// Stale reports that the nodes have another structure by now.
func (t *Topology) Stale() bool { return t.structure != t.nodes.structure }

// Clear empties a topology that is not used any more. Tallies over it keep it, until they are
// used themselves.
func (t *Topology) Clear() { t.groups, t.where = nil, nil }

// ofNodes reports whether a group is one of nodes: soft ones come last in it, and loads are compared with the pod
// that is placed.
func (t *Topology) ofNodes(g *group) bool {
	return g.leaf || t.levels[g.level].Property.IsHost()
}

// Has reports whether a node is in the topology, which its levels may leave out.
func (t *Topology) Has(node int32) bool {
	return int(node) < len(t.where) && t.where[node].group != none
}

// Nodes returns the nodes of the topology, in order.
func (t *Topology) Nodes() []int32 {
	return slices.DeleteFunc(slices.Clone(t.nodes.All()), func(n int32) bool { return !t.Has(n) })
}

// included returns the nodes that no level leaves out, in order.
func (t *Topology) included() []int32 {
	excluding := make([]int, 0, len(t.levels))
	for i := range t.levels {
		if t.levels[i].NodesWithoutKey == level.Exclude {
			excluding = append(excluding, i)
		}
	}
	all := t.nodes.All()
	if len(excluding) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(n int32) bool {
		return slices.ContainsFunc(excluding, func(i int) bool { return t.value(n, i).Missing })
	})
}

// build makes the group of nodes, and those below it, and returns it as a member. The
// nodes are in order.
func (t *Topology) build(nodes []int32, d division, parent, slot int32) (member int32) {
	if len(nodes) == 1 && parent != none {
		t.where[nodes[0]] = place{parent, slot}
		return nodes[0]
	}
	var parts []part
	for {
		if d.level == len(t.levels) {
			return ^t.leaf(nodes, d, parent, slot)
		}
		if parts = t.divide(nodes, d); len(parts) == len(nodes) && t.dividesNodes(d) && !slices.ContainsFunc(parts, part.isLastResort) {
			return ^t.leaf(nodes, d, parent, slot)
		}
		if len(parts) != 1 {
			break
		}
		d = parts[0].below
	}
	id := t.add(group{parent: parent, slot: slot, division: d}, len(parts))
	members, values := make([]int32, len(parts)), make([]string, len(parts))
	var shares []int32
	for i := range parts {
		p := &parts[i]
		values[i] = p.value
		if p.share != 1 && shares == nil {
			shares = slices.Repeat([]int32{1}, len(parts))
		}
		if shares != nil {
			shares[i] = p.share
		}
		members[i] = t.build(p.nodes, p.below, id, int32(i))
	}
	g := &t.groups[id]
	g.members, g.values, g.shares, g.byShare = members, values, shares, classesOfShares(shares)
	return ^id
}

func (t *Topology) leaf(nodes []int32, d division, parent, slot int32) (id int32) {
	id = t.add(group{parent: parent, slot: slot, division: d, leaf: true, members: nodes}, len(nodes))
	for i, n := range nodes {
		t.where[n] = place{id, int32(i)}
	}
	return id
}

func (t *Topology) add(g group, members int) (id int32) {
	g.mask = t.words
	t.words += int32(members+63) / 64
	t.groups = append(t.groups, g)
	return int32(len(t.groups) - 1)
}

// part is the nodes of one value.
type part struct {
	value string
	share int32
	below division
	nodes []int32
}

// isLastResort reports that no pod is to go there that has a place elsewhere. A share of 0 says so to
// all that compares pods by shares: none is too few.
func (p part) isLastResort() bool { return p.share == 0 }

// divide returns the branches of nodes, by value. No nodes have none.
func (t *Topology) divide(nodes []int32, d division) []part {
	type key struct {
		value      string
		lastResort bool // apart from nodes on which the value is empty
	}
	index := make(map[key]int)
	var parts []part
	for _, n := range nodes {
		p := t.part(t.value(n, d.level), d)
		k := key{p.value, p.isLastResort()}
		i, known := index[k]
		if !known {
			i = len(parts)
			index[k] = i
			parts = append(parts, p)
		}
		parts[i].nodes = append(parts[i].nodes, n)
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(strings.Compare(a.value, b.value), cmp.Compare(a.share, b.share))
	})
	if t.levels[d.level].Share == level.Allocatable {
		t.shareByAllocatable(parts, t.levels[d.level].Property.IsHost())
	}
	return parts
}

// shareByAllocatable makes the shares of branches what their nodes have of CPU, in parts per million of what the largest has. That
// of a host is rounded, as sizes are, so that hosts have few shares.
func (t *Topology) shareByAllocatable(parts []part, hosts bool) {
	has, most := make([]int64, len(parts)), int64(0)
	for i := range parts {
		var u placement.Usage
		for _, n := range parts[i].nodes {
			u = u.Add(t.nodes.all[n].Usage)
		}
		if has[i] = u.CPU.Allocatable; hosts {
			has[i] = u.Size().CPU
		}
		most = max(most, has[i])
	}
	for i := range parts {
		if !parts[i].isLastResort() && most > 0 {
			// A share of the most is a load of it, and exact however much that is.
			parts[i].share = int32(max(1, placement.Usage{CPU: placement.Amount{Requested: has[i], Allocatable: most}}.Load()))
		}
	}
}

// part returns the branch of a value, still without nodes.
func (t *Topology) part(value placement.Value, d division) part {
	l := &t.levels[d.level]
	p := part{value: value.Text, share: 1, below: division{level: d.level + 1}}
	if value.Missing && l.NodesWithoutKey == level.LastResort {
		p.share = 0
		return p
	}
	if d.others || len(l.Weights) == 0 {
		return p
	}
	share, listed := l.ShareOf(value.Text)
	switch {
	case listed:
		p.share = int32(share)
	case l.HasOthers():
		p.value, p.share, p.below = level.Others, int32(share), division{d.level, true}
	}
	return p
}

func classesOfShares(shares []int32) []shareClass {
	var classes []shareClass
	for slot, share := range shares {
		i := slices.IndexFunc(classes, func(c shareClass) bool { return c.share == share })
		if i < 0 {
			i = len(classes)
			classes = append(classes, shareClass{share: share, members: &members.Set{}})
		}
		classes[i].members.Add(int32(slot))
	}
	slices.SortFunc(classes, func(a, b shareClass) int { return cmp.Compare(b.share, a.share) })
	return classes
}

// dividesNodes reports that a division spreads evenly, and nothing is below it. If it has
// a branch for each node, it says what is true of every placement: that it ends with nodes.
func (t *Topology) dividesNodes(d division) bool {
	l := &t.levels[d.level]
	return d.level == len(t.levels)-1 && l.Strategy == level.Spread && (d.others || len(l.Weights) == 0 && l.Share == "")
}

func (t *Topology) packs(g *group) bool {
	return !g.leaf && t.levels[g.level].Strategy == level.Pack
}

func (g *group) share(slot int32) int32 {
	if g.shares == nil {
		return 1
	}
	return g.shares[slot]
}

// usageOf returns the usage of a member.
func (t *Topology) usageOf(member int32) placement.Usage {
	if member < 0 {
		return t.groups[^member].usage
	}
	return t.nodes.all[member].Usage
}
