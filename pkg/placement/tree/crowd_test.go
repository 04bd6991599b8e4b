// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Crowds of nodes in one leaf, and of branches below one, stay in order whoever
// comes and goes. Other properties have few of each, and no heap of few is deep
// enough for all that can go wrong in one.
func TestCrowdsStayInOrder(t *testing.T) {
	checkShare(t, 2, func(t *rapid.T) {
		racks := rapid.SampledFrom([]int{0, 2, 50}).Draw(t, "racks")
		c := &cluster{rule: drawRule(t), unique: -1, room: make(map[string]int64)}
		if racks > 0 {
			c.levels = []level.Level{{Strategy: level.Spread, Property: level.Property{Label: "rack"}, NodesWithoutKey: level.OwnDomain}}
		}
		s := grow(t, c)
		node := func() placement.Node {
			n := placement.Node{Name: fmt.Sprintf("n%02d", rapid.IntRange(0, 99).Draw(t, "name")), Tally: drawCrowd(t)}
			if racks > 0 {
				n.Values = []placement.Value{{Text: fmt.Sprint("rack-", rapid.IntRange(1, racks).Draw(t, "rack"))}}
			}
			return n
		}
		for range rapid.IntRange(20, 60).Draw(t, "nodes") {
			s.set(node(), 3)
		}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			kind := rapid.IntRange(0, 4).Draw(t, "change")
			if len(s.nodes) == 0 {
				kind = 0
			}
			switch kind {
			case 0:
				s.set(node(), drawRoom(t))
			case 1:
				s.remove(s.anyNode().Name)
			case 2:
				s.add(s.anyNode().Name, onePod)
			case 3:
				s.recheck(s.anyNode().Name, drawRoom(t))
			case 4:
				s.next()
			}
		}
		s.next()
		names := make([]string, 0, len(s.nodes))
		for _, n := range s.nodes {
			names = append(names, n.Name)
		}
		for i, name := range names {
			if i%4 != 0 {
				s.tree.Remove(name)
			}
		}
		s.nodes = slices.DeleteFunc(s.nodes, func(n placement.Node) bool { return slices.Index(names, n.Name)%4 != 0 })
		s.validate()
		s.next()
	})
}

func drawCrowd(t *rapid.T) placement.Tally {
	pods := rapid.Int64Range(0, 9)
	revision := pods.Draw(t, "revision")
	workload := revision + pods.Draw(t, "of other revisions")
	return placement.Tally{Revision: revision, Workload: workload, All: workload + pods.Draw(t, "of others")}
}
