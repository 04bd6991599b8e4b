// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCloneIsTheSame holds a clone to the oracle, and asks it only what the filters have
// not told the tree that it is of.
func TestCloneIsTheSame(t *testing.T) {
	checkShare(t, 10, func(rt *rapid.T) {
		s := lived(rt)
		clone := s.tree.Clone() // before String puts all in their places
		was := s.tree.String()
		s.tree = clone
		s.validate()
		if is := s.tree.String(); is != was {
			rt.Fatalf("the clone is\n%s\nof\n%s", is, was)
		}
		s.live()
	})
}

// TestCloneIsIndependent changes a clone, and then holds the tree that it is of to the oracle.
func TestCloneIsIndependent(t *testing.T) {
	checkShare(t, 10, func(rt *rapid.T) {
		s := lived(rt)
		original, was := *s, s.tree.String()
		cluster := *s.cluster
		cluster.nodes, cluster.room = slices.Clone(cluster.nodes), maps.Clone(cluster.room)
		original.cluster, original.answers = &cluster, maps.Clone(s.answers)
		s.tree = s.tree.Clone()
		s.live()
		if is := original.tree.String(); is != was {
			rt.Fatalf("the tree was\n%s\nand has become, through its clone,\n%s", was, is)
		}
		original.live()
	})
}

// lived is a subject to which some things have happened.
func lived(t *rapid.T) *subject {
	s := grow(t, drawCluster(t, ordinary(t)))
	s.live()
	return s
}

func (s *subject) live() {
	for range rapid.IntRange(0, 6).Draw(s.t, "changes") {
		s.change()
		if oneIn(s.t, 2, "decide") {
			s.next()
		}
	}
}
