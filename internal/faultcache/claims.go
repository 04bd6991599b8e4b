// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"cmp"
	"slices"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// What is known and what is written have bounds, and one rule for who has room within them:
// of each namespace the revisions that failed last come first, and among namespaces those that
// ask for least. What fails in one does not take the room of another.

// claim is a revision that asks for room.
type claim struct {
	of failure.Revision
	// failed is when it last failed, and size how much it asks for.
	failed time.Time
	size   int
	// index is for who asks.
	index int
	// upTo is how much its namespace has asked for by then, and this one with it.
	upTo int
}

// order puts claims into the order in which they have a right to room.
func order(claims []claim) {
	slices.SortFunc(claims, func(a, b claim) int { return cmp.Or(b.failed.Compare(a.failed), a.of.Compare(b.of)) })
	asked := make(map[string]int)
	for i := range claims {
		namespace := namespaceOf(claims[i].of)
		asked[namespace] += claims[i].size
		claims[i].upTo = asked[namespace]
	}
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(a.upTo, b.upTo) })
}

// grant are the claims that have room, those that have not, in order, and the room that
// remains.
func grant(claims []claim, room int) (whole, rest []claim, left int) {
	order(claims)
	for _, c := range claims {
		if c.size > room {
			rest = append(rest, c)
			continue
		}
		whole, room = append(whole, c), room-c.size
	}
	return whole, rest, room
}

// cut leaves of a revision's nodes those that failed last and have room, and tells how much
// they take.
func cut(nodes []failure.NodeHistory, room int, sizeOf func(*failure.NodeHistory) int) (kept []failure.NodeHistory, taken int) {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b failure.NodeHistory) int { return newest(&b).Compare(newest(&a)) })
	for i := range nodes {
		if size := sizeOf(&nodes[i]); taken+size <= room {
			kept, taken = append(kept, nodes[i]), taken+size
		}
	}
	return kept, taken
}

// newest is when a node last failed. Failures are in order.
func newest(n *failure.NodeHistory) (at time.Time) {
	if last := len(n.Failures) - 1; last >= 0 {
		at = n.Failures[last].At
	}
	return at
}
