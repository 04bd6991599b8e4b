// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evenness judges where the pods of a workload ended up.
//
// It knows nothing of how they got there: it takes counts and reports whether any
// single pod could have been placed better. Because the shares at one level are
// independent of each other, a spread that no single pod can improve is as even
// as it can be, so looking at pairs of branches is enough.
//
// The demo and the end-to-end stories judge with it. It shares no code with the
// scheduler on purpose: a mistake made in one is then seen by the other.
package evenness

import (
	"fmt"
	"math"
	"sort"
)

// Unlimited is the room of a node that can hold any number of pods.
const Unlimited = math.MaxInt32

// Others is the weight of all values that have none of their own.
const Others = "*"

// Level is one thing to be even over.
type Level struct {
	// Name is the node label, for messages.
	Name string
	// Pack asks for as few branches as possible instead.
	Pack bool
	// Weights are the shares of values. Without any, all values weigh the same;
	// with some, unlisted values share the weight of Others between them, and
	// weigh 1 each where Others has none.
	Weights map[string]int64
	// Exclude keeps pods off nodes whose value is "".
	Exclude bool
}

// Node is one node and what is on it.
type Node struct {
	Name string
	// Values holds the node's value for each level, "" where it has none.
	Values []string
	// Count is the number of the workload's pods on the node.
	Count int
	// Fixed is how many of these were there before what is being judged: nobody
	// could have placed them otherwise. At most Count.
	Fixed int
	// Room is the number of the workload's pods that the node can hold in all. A
	// node that takes no more pods has its Count as room.
	Room int
}

func (n Node) movable() int { return n.Count - n.Fixed }

// Check says what is not as even as it can be, first level first, one sentence
// each. It returns nothing if no pod could have been placed better. Nodes are
// the last level: inside a branch of the last level in levels, pods are to be
// spread over nodes.
func Check(levels []Level, nodes []Node) []string {
	var findings []string
	for _, n := range nodes {
		if len(n.Values) != len(levels) {
			return []string{fmt.Sprintf("node %s has %d values for %d levels: the counts cannot be judged", n.Name, len(n.Values), len(levels))}
		}
		if n.Count > n.Room {
			findings = append(findings, fmt.Sprintf("node %s has %d pods and room for %d", n.Name, n.Count, n.Room))
		}
	}
	nodes, stray := withoutExcluded(levels, nodes)
	findings = append(findings, stray...)
	walk(Grow(levels, nodes), func(b *Branch) {
		if f := judge(b); f != "" {
			findings = append(findings, f)
		}
	})
	return findings
}

// Counts is the number of pods by the value of one level.
func Counts(level int, nodes []Node) map[string]int {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[n.Values[level]] += n.Count
	}
	return counts
}

// withoutExcluded takes out the nodes that a level leaves out, so that their
// room is not held against the others.
func withoutExcluded(levels []Level, nodes []Node) (kept []Node, findings []string) {
	for _, n := range nodes {
		excludedBy := ""
		for i, l := range levels {
			if l.Exclude && n.Values[i] == "" {
				excludedBy = l.Name
				break
			}
		}
		if excludedBy == "" {
			kept = append(kept, n)
			continue
		}
		if n.movable() > 0 {
			findings = append(findings, fmt.Sprintf("node %s has %d pods, but has no %s and is left out", n.Name, n.movable(), excludedBy))
		}
	}
	return kept, findings
}

// judge says what is wrong between the children of one branch, "" if nothing is.
func judge(b *Branch) string {
	if b.packs {
		return judgePack(b)
	}
	return judgeSpread(b)
}

// judgeSpread compares the fullest child that got a pod with the emptiest that
// could have got it instead: with every other pair the difference is smaller. By Sainte-Laguë's rule a child's last pod
// stands at (2n - 1) / weight, and the next one would at (2n + 1) / weight.
func judgeSpread(b *Branch) string {
	var high, low *Branch
	for _, c := range b.Children {
		if c.Count > c.Fixed && (high == nil || c.last()*high.Weight > high.last()*c.Weight) {
			high = c
		}
		if c.Count < c.Room && (low == nil || c.next()*low.Weight < low.next()*c.Weight) {
			low = c
		}
	}
	if high == nil || low == nil || high == low || high.last()*low.Weight <= low.next()*high.Weight {
		return ""
	}
	return fmt.Sprintf("%s: %s has %d%s, while %s has %d%s and %s",
		b.where(), high.Name, high.Count, high.share(), low.Name, low.Count, low.share(), roomLeft(low))
}

func (b *Branch) last() int64 { return 2*int64(b.Count) - 1 }
func (b *Branch) next() int64 { return 2*int64(b.Count) + 1 }

// judgePack allows one child that got pods and still has room, and wants it to be the fullest.
func judgePack(b *Branch) string {
	var open *Branch
	for _, c := range b.Children {
		if c.Count == c.Fixed || c.Count == c.Room {
			continue
		}
		if open != nil {
			return fmt.Sprintf("%s: %s and %s both have pods (%d and %d), though either %s",
				b.where(), open.Name, c.Name, open.Count, c.Count, "has room for more")
		}
		open = c
	}
	if open == nil {
		return ""
	}
	for _, c := range b.Children {
		if c != open && c.Count < c.Room && c.Count >= open.Count {
			return fmt.Sprintf("%s: %s has %d, while %s has %d and %s",
				b.where(), open.Name, open.Count, c.Name, c.Count, roomLeft(c))
		}
	}
	return ""
}

func roomLeft(b *Branch) string {
	if b.Room >= Unlimited {
		return "room for more"
	}
	return fmt.Sprintf("room for %d more", b.Room-b.Count)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
