// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"cmp"
	"slices"
	"time"
)

// Rule is for how long nodes run, and how many end at once.
type Rule struct {
	// Lifetime is how long a node runs at most, and Least how long at least.
	Lifetime, Least time.Duration
	// PerDomain is how many nodes of a domain end at once at most, 0 for any number.
	PerDomain int
}

// Node is one that gets an end.
type Node struct {
	Name, Domain string
	// Up is since when it runs.
	Up time.Time
	// Latest is when it ends whatever is decided here, the zero time for never.
	Latest time.Time
	// End is the one that it was given before, the zero time for none.
	End time.Time
}

// latest is until when a node may run.
func (n *Node) latest(r *Rule) time.Time {
	last := n.Up.Add(r.Lifetime)
	if !n.Latest.IsZero() && n.Latest.Before(last) {
		return n.Latest
	}
	return last
}

// bucket is the nodes that end at one date.
type bucket struct {
	at       time.Time
	members  int
	byDomain map[string]int
	given    []*Node // those to which this end is given now
}

// cost is what it costs to put a node into a bucket: less is better.
type cost struct {
	// outside: the node would run for too long, or not long enough.
	outside bool
	// over is by how many nodes of its domain too many would end at once.
	over    int
	members int
}

func (c cost) compare(o cost) int {
	switch {
	case c.outside && !o.outside:
		return 1
	case !c.outside && o.outside:
		return -1
	}
	return cmp.Or(cmp.Compare(c.over, o.over), cmp.Compare(c.members, o.members))
}

// cost is that of a node in a bucket (TV20). Buckets outside of its time are alike.
func (b *bucket) cost(n *Node, r *Rule) cost {
	if b.at.After(n.latest(r)) || b.at.Before(n.Up.Add(r.Least)) {
		return cost{outside: true}
	}
	c := cost{members: b.members}
	if r.PerDomain > 0 {
		c.over = max(0, b.byDomain[n.Domain]+1-r.PerDomain)
	}
	return c
}

func (b *bucket) add(n *Node) {
	b.members++
	b.byDomain[n.Domain]++
}

func (b *bucket) give(n *Node) {
	b.add(n)
	b.given = append(b.given, n)
}

func (b *bucket) takeBack(n *Node) {
	b.members--
	b.byDomain[n.Domain]--
	b.given = slices.DeleteFunc(b.given, func(g *Node) bool { return g == n })
}

// Assign returns the end of each node, in their order (TV21). There must be dates, which are those of a Schedule.
//
// A node that has been given one of the dates keeps it, so that what is written down on the nodes is all that a restart needs. The others
// are taken in the order of their names. Each gets the date with the fewest nodes, among those at which its domain has not enough yet, and
// of several the latest. If that leaves a date with fewer nodes, one of those taken before may have that one, and make room for it. A node
// that should have ended before the first date gets the first, and one for which no date is right the last.
func (r Rule) Assign(dates []time.Time, nodes []Node) []time.Time {
	buckets := make([]bucket, len(dates))
	for i, at := range dates {
		buckets[i] = bucket{at: at, byDomain: make(map[string]int)}
	}
	ends := make(map[*Node]time.Time, len(nodes))
	var rest []*Node
	for i := range nodes {
		n := &nodes[i]
		if at := slices.IndexFunc(dates, n.End.Equal); at >= 0 {
			buckets[at].add(n)
			ends[n] = dates[at]
		} else {
			rest = append(rest, n)
		}
	}
	slices.SortFunc(rest, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range rest {
		r.exchange(buckets, n, r.cheapest(buckets, n)).give(n)
	}
	for i := range buckets {
		for _, n := range buckets[i].given {
			ends[n] = buckets[i].at
		}
	}
	all := make([]time.Time, len(nodes))
	for i := range nodes {
		all[i] = ends[&nodes[i]]
	}
	return all
}

// exchange returns the bucket for a node for which b is the cheapest. Its domain may keep it from a bucket with fewer nodes: then one that was
// given its end before it goes there, and leaves it a bucket in which its domain has room.
func (r *Rule) exchange(buckets []bucket, n *Node, b *bucket) *bucket {
	is := b.cost(n, r)
	var fewer []*bucket // the latest first
	for i := len(buckets) - 1; i >= 0 && !is.outside; i-- {
		if is.over > 0 || buckets[i].members < is.members {
			fewer = append(fewer, &buckets[i])
		}
	}
	roomFor := func(n *Node, in *bucket) bool {
		c := in.cost(n, r)
		return !c.outside && c.over == 0
	}
	for i := len(buckets) - 1; i >= 0 && len(fewer) > 0; i-- {
		left := &buckets[i]
		if !roomFor(n, left) {
			continue
		}
		for _, o := range left.given {
			for _, to := range fewer {
				if o.Domain != n.Domain && to != left && roomFor(o, to) {
					left.takeBack(o)
					to.give(o)
					return left
				}
			}
		}
	}
	return b
}

// cheapest is the bucket for a node.
func (r *Rule) cheapest(buckets []bucket, n *Node) *bucket {
	if buckets[0].at.After(n.latest(r)) {
		return &buckets[0]
	}
	best := &buckets[len(buckets)-1]
	for i := len(buckets) - 2; i >= 0; i-- {
		if b := &buckets[i]; b.cost(n, r).compare(best.cost(n, r)) < 0 {
			best = b
		}
	}
	return best
}

// Begin returns which of the nodes whose ends have come are to be taken out of service now: those that ended first, as long as of no domain
// more are out of service than may be. Out has how many of each domain are already, and is changed.
func (r Rule) Begin(due []Node, out map[string]int) []Node {
	due = slices.Clone(due)
	slices.SortFunc(due, func(a, b Node) int { return cmp.Or(a.End.Compare(b.End), cmp.Compare(a.Name, b.Name)) })
	return slices.DeleteFunc(due, func(n Node) bool {
		if r.PerDomain > 0 && out[n.Domain] >= r.PerDomain {
			return true
		}
		out[n.Domain]++
		return false
	})
}
