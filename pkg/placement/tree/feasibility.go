// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/members"
)

// Feasibility is the filters' last answer for each node, for pods that they cannot tell
// apart: one for each class of needs, whatever workloads its pods are of. A node that
// they have not refused since it changed last is open.
//
// Beside the bit a node and the count a branch that decisions need, it has two bytes a
// node that say for which reason a node was refused.
type Feasibility struct {
	nodes   *Nodes
	version uint64
	answers []answer // by node
	refused int      // how many are
	reasons []int    // how many for which reason
	masks   []*mask
	// Tolerates reports whether the pods do not mind what makes nodes soft, by Facts.Soft. Without it
	// they mind everything. It must not be changed once there are decisions.
	Tolerates func(soft string) bool
	// Request is what each of the pods requests of a node.
	Request placement.Usage
	scratch [3][]uint64 // for divided and within
}

// answer is the filters' last answer for a node, since it changed.
type answer uint16

const (
	unasked answer = iota
	fits
	// refused and all above it: for the reason of this number.
	refused
	// outdated marks an answer that must not be relied on any more.
	outdated answer = 1 << 15
)

// MaxReasons bounds the reasons for which nodes are refused. A caller with more gives one number to the rest.
const MaxReasons = int(outdated - refused)

// NewFeasibility returns one without answers.
func NewFeasibility(nodes *Nodes) *Feasibility {
	return &Feasibility{nodes: nodes, version: nodes.version}
}

func (a answer) refuses() bool { return a >= refused && a&outdated == 0 }

// Refresh forgets the answers for nodes that have changed since.
func (f *Feasibility) Refresh() {
	f.answers = append(f.answers, make([]answer, len(f.nodes.all)-len(f.answers))...)
	version := f.version
	f.version = f.nodes.version
	if changes, known := f.nodes.since(version); known {
		for i := range changes {
			f.set(changes[i].node, unasked)
		}
		return
	}
	for n := range f.nodes.all {
		if f.nodes.all[n].changed > version {
			f.set(int32(n), unasked)
		}
	}
}

// Allow notes that the filters allow a pod on a node.
func (f *Feasibility) Allow(node int32) { f.set(node, fits) }

// Refuse notes that they do not, for a reason below MaxReasons.
func (f *Feasibility) Refuse(node int32, reason int) { f.set(node, refused+answer(reason)) }

// Recheck has the filters asked about a node again.
func (f *Feasibility) Recheck(node int32) {
	if f.answers[node] != unasked {
		f.set(node, f.answers[node]|outdated)
	}
}

// Allowed reports that the filters allow a pod on a node, as far as is known.
func (f *Feasibility) Allowed(node int32) bool { return f.answers[node] == fits }

// Refused reports that they do not.
func (f *Feasibility) Refused(node int32) bool { return f.answers[node].refuses() }

// Reason is that for which they have refused a node.
func (f *Feasibility) Reason(node int32) int {
	if f.Refused(node) {
		return int(f.answers[node] - refused)
	}
	return 0
}

// Open is how many nodes have not been refused, of all topologies.
func (f *Feasibility) Open() int { return f.nodes.Len() - f.refused }

// OpenNodes returns them, in no order that means anything.
func (f *Feasibility) OpenNodes() []int32 {
	var open []int32
	for node, a := range f.answers {
		if !a.refuses() && f.nodes.all[node].name != "" {
			open = append(open, int32(node))
		}
	}
	return open
}

// Reasons counts the nodes that are refused, by reason. It must not be altered.
func (f *Feasibility) Reasons() []int { return f.reasons }

func (f *Feasibility) count(a answer, by int) {
	if !a.refuses() {
		return
	}
	reason := int(a - refused)
	for len(f.reasons) <= reason {
		f.reasons = append(f.reasons, 0)
	}
	f.reasons[reason] += by
	f.refused += by
}

func (f *Feasibility) set(node int32, a answer) {
	was := f.answers[node]
	f.answers[node] = a
	f.count(was, -1)
	f.count(a, +1)
	if was.refuses() == a.refuses() {
		return
	}
	for _, m := range f.masks {
		m.set(node, !a.refuses())
	}
}

// last is the answer for a node since it changed, whether it is relied on or not.
func (f *Feasibility) last(node int32) answer { return f.answers[node] &^ outdated }

// soft reports whether a node is soft to the pods.
func (f *Feasibility) soft(node int32) bool {
	soft := f.nodes.all[node].Soft
	return soft != "" && (f.Tolerates == nil || !f.Tolerates(soft))
}

// mask marks the open ready nodes, and the groups that have any.
//
// A node that is not ready comes after all others, so that no decision needs to see it
// while there are others: those have a mask of their own, which is made when it is needed.
type mask struct {
	topology *Topology
	unready  bool // it marks the open nodes that are not ready instead
	words    []uint64
	open     []int32 // open members, by group
	// soft marks the members that are soft, open or not; nil without any.
	soft []uint64
}

// maxMasks bounds the topologies that one class of needs has masks for.
const maxMasks = 16

// mask returns the one over a topology, which must not be stale.
func (f *Feasibility) mask(t *Topology) *mask {
	for _, m := range slices.Backward(f.masks) {
		if m.topology == t {
			return m
		}
	}
	f.masks = slices.DeleteFunc(f.masks, func(m *mask) bool { return m.topology.structure != t.structure })
	if len(f.masks) == maxMasks {
		f.masks = slices.Delete(f.masks, 0, 1)
	}
	m := f.newMask(t, false)
	f.masks = append(f.masks, m)
	return m
}

func (f *Feasibility) newMask(t *Topology, unready bool) *mask {
	m := &mask{topology: t, unready: unready, words: make([]uint64, t.words), open: make([]int32, len(t.groups))}
	for i := len(t.groups) - 1; i >= 0; i-- {
		g := &t.groups[i]
		for slot, member := range g.members {
			open := member < 0 && m.open[^member] > 0 ||
				member >= 0 && !f.answers[member].refuses() && t.nodes.all[member].Unready == unready
			if open {
				m.words[int(g.mask)+slot/64] |= 1 << (slot % 64)
				m.open[i]++
			}
			if member >= 0 && t.ofNodes(g) && f.soft(member) {
				if m.soft == nil {
					m.soft = make([]uint64, t.words)
				}
				m.soft[int(g.mask)+slot/64] |= 1 << (slot % 64)
			}
		}
	}
	return m
}

// set marks a node, and the groups above it whose first or last open member it is.
func (m *mask) set(node int32, open bool) {
	if !m.topology.Has(node) || m.topology.nodes.all[node].Unready != m.unready {
		return
	}
	at := m.topology.where[node]
	for {
		g := &m.topology.groups[at.group]
		w, bit := &m.words[g.mask+at.slot/64], uint64(1)<<(at.slot%64)
		if (*w&bit != 0) == open {
			return
		}
		*w ^= bit
		if open {
			m.open[at.group]++
		} else {
			m.open[at.group]--
		}
		if first := open && m.open[at.group] == 1; g.parent == none || !first && m.open[at.group] > 0 {
			return
		}
		at = place{g.parent, g.slot}
	}
}

// anyBelow reports whether a node is open below a member of a group, or is that member.
func (m *mask) anyBelow(member int32) bool {
	if member < 0 {
		return m.open[^member] > 0
	}
	at := m.topology.where[member]
	return m.of(&m.topology.groups[at.group])[at.slot/64]&(1<<(at.slot%64)) != 0
}

// divided returns the open members of a group that are not soft, and those that are. The next call
// overwrites them.
func (f *Feasibility) divided(m *mask, g *group, open []uint64) (others, soft []uint64) {
	others, soft = f.scratch[0][:0], f.scratch[1][:0]
	for at, word := range open {
		is := m.soft[int(g.mask)+at]
		others, soft = append(others, word&^is), append(soft, word&is)
	}
	f.scratch[0], f.scratch[1] = others, soft
	return others, soft
}

// within returns the open members that are in a set. The next call overwrites them.
func (f *Feasibility) within(open []uint64, in *members.Set) []uint64 {
	f.scratch[2] = append(f.scratch[2][:0], open...)
	in.Within(f.scratch[2])
	return f.scratch[2]
}

// of returns the words of a group.
func (m *mask) of(g *group) []uint64 {
	return m.words[g.mask : int(g.mask)+(len(g.members)+63)/64]
}
