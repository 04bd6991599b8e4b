// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// What is known and what is written have bounds, and one rule for who has room within them:
// of each namespace the revisions that failed last come first, and among namespaces those that
// ask for least. What fails in one does not take the room of another.

// Claim is a revision that asks for room.
type Claim struct {
	Of failure.Revision
	// Failed is when it last failed, and Size how much it asks for.
	Failed time.Time
	Size   int
	// UpTo is how much its namespace has asked for by then, and this one with it.
	UpTo int
	// index is for who asks.
	index int
}

// Order puts claims into the order in which they have a right to room.
func Order(claims []Claim) {
	slices.SortFunc(claims, func(a, b Claim) int { return cmp.Or(b.Failed.Compare(a.Failed), a.Of.Compare(b.Of)) })
	asked := make(map[string]int)
	for i := range claims {
		namespace := Namespace(claims[i].Of)
		asked[namespace] += claims[i].Size
		claims[i].UpTo = asked[namespace]
	}
	slices.SortStableFunc(claims, func(a, b Claim) int { return cmp.Compare(a.UpTo, b.UpTo) })
}

// Grant returns the claims that have room, those that have not, in order, and the room that
// remains.
func Grant(claims []Claim, room int) (whole, rest []Claim, left int) {
	Order(claims)
	for _, c := range claims {
		if c.Size > room {
			rest = append(rest, c)
			continue
		}
		whole, room = append(whole, c), room-c.Size
	}
	return whole, rest, room
}

// Cut leaves of a revision's nodes those that failed last and have room, and tells how much
// they take.
func Cut(nodes []failure.NodeHistory, room int, sizeOf func(*failure.NodeHistory) int) (kept []failure.NodeHistory, taken int) {
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

// Namespace is that of a revision's pods.
func Namespace(of failure.Revision) string {
	namespace, _, _ := strings.Cut(of.Workload, "/")
	return namespace
}
