// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

// Tied returns open nodes beside the one that Next has decided on, that one first, which nothing but their names tells from it: those of
// its group, in their order, as far as they are among so many that come next. Where pods have turns there is but the one.
func (v View) Tied(node int32, among int) []int32 {
	tied := []int32{node}
	if v.Turn != nil {
		return tied
	}
	at := v.Topology.where[node]
	g := &v.Topology.groups[at.group]
	is, load := v.memberKey(g, at.slot, v.nodeHealth(node)), v.after(g, at.slot)
	for slot := at.slot + 1; slot < min(at.slot+int32(among), int32(len(g.members))); slot++ {
		other := g.members[slot]
		if other < 0 || v.Feasibility.Refused(other) || v.after(g, slot) != load {
			continue
		}
		if k := v.memberKey(g, slot, v.nodeHealth(other)); k.compare(&is, v.Topology.packs(g)) == 0 {
			tied = append(tied, other)
		}
	}
	return tied
}
