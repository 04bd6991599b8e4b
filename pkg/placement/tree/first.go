// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import "github.com/espalier-scheduler/espalier/pkg/placement/level"

// First returns the branch of the first level that a node is in: its value, and its share, 0 for a last resort. It is the
// same branch whether there are others or not. It is false for a node that the levels leave out, where there is no level, and
// where the first one packs.
func (t *Topology) First(node int32) (value string, share int32, ok bool) {
	if !t.Has(node) || len(t.levels) == 0 || t.levels[0].Strategy == level.Pack {
		return "", 0, false
	}
	p := t.part(t.value(node, 0), division{})
	if t.levels[0].Share == level.Allocatable && !p.isLastResort() {
		p.share = t.allocatableShare(node)
	}
	return p.value, p.share, true
}

// allocatableShare is that of a node's branch of the first level. An only branch has all.
func (t *Topology) allocatableShare(node int32) int32 {
	if root := &t.groups[0]; root.level == 0 {
		return root.share(t.first(node))
	}
	return level.MaxShare
}
