// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Snapshot is what outlives a ledger. Where pods are is not in it: that can be seen.
type Snapshot struct {
	Revisions []RevisionHistory `json:"revisions,omitempty"`
}

// RevisionHistory is what outlives a ledger of one revision.
type RevisionHistory struct {
	Workload string `json:"workload"`
	Revision string `json:"revision"`
	// Rule is the revision's own, nil if it has none. Without it the failures of a
	// longer window would be forgotten before a pod shows its rule.
	Rule  *Rule         `json:"rule,omitempty"`
	Nodes []NodeHistory `json:"nodes"`
}

// NodeHistory is what outlives a ledger of one revision on one node.
type NodeHistory struct {
	Node     string    `json:"node"`
	Failures []Failure `json:"failures,omitempty"`
	// Succeeded is when anything last succeeded.
	Succeeded time.Time `json:"succeeded,omitzero"`
}

// History changes whenever Snapshot does.
func (l *Ledger) History() uint64 { return l.history }

// Snapshot returns what a ledger to come should know, in an order of its own.
func (l *Ledger) Snapshot() (s Snapshot) {
	for _, of := range l.Revisions() {
		if c, ok := l.Capture(of); ok {
			s.Revisions = append(s.Revisions, c.History())
		}
	}
	return s
}

// Captured is what is known of a revision at one moment. Later changes of the ledger do not
// change it. It costs little to make, and its History can be computed without the ledger's lock.
type Captured struct {
	of   Revision
	rule *Rule
	// failed and sound are the nodes that have failed and those that have succeeded only.
	failed, sound []NodeHistory
}

// Capture is false if the revision is not in the ledger.
func (l *Ledger) Capture(of Revision) (c Captured, ok bool) {
	r, ok := l.revisions[of]
	if !ok {
		return c, false
	}
	c.of, c.failed = of, make([]NodeHistory, 0, r.failing)
	if rule := r.rule; rule != l.defaults {
		c.rule = &rule
	}
	for node, e := range r.entries {
		switch {
		case len(e.failures) > 0:
			c.failed = append(c.failed, NodeHistory{node, e.failures, e.succeeded})
		case !e.succeeded.IsZero():
			c.sound = append(c.sound, NodeHistory{Node: node, Succeeded: e.succeeded})
		}
	}
	return c, true
}

// Failed are the nodes that have failures, in no order.
func (c *Captured) Failed() []NodeHistory { return c.failed }

// History is what outlives the ledger of the revision, in an order of its own.
//
// Of the nodes on which it has only succeeded there are as many as it takes to say
// that an error is not the revision's own: all the others would add is length.
func (c *Captured) History() RevisionHistory {
	byName := func(a, b NodeHistory) int { return strings.Compare(a.Node, b.Node) }
	slices.SortFunc(c.failed, byName)
	slices.SortFunc(c.sound, func(a, b NodeHistory) int { return cmp.Or(b.Succeeded.Compare(a.Succeeded), byName(a, b)) })
	nodes := slices.Concat(c.failed, c.sound[:min(len(c.sound), 2*len(c.failed))])
	return RevisionHistory{Workload: c.of.Workload, Revision: c.of.Revision, Rule: c.rule, Nodes: nodes}
}

// Restore adds what an earlier ledger knew. What is known already is not counted
// twice, and what counts for nothing by now is left out. It returns the revisions that
// were not known before: the caller records all their pods.
func (l *Ledger) Restore(s Snapshot) (first []Revision) {
	for _, h := range s.Revisions {
		of := Revision{h.Workload, h.Revision}
		known := l.Knows(of)
		rule := l.defaults
		if h.Rule != nil {
			rule = h.Rule.Normal()
		}
		r := l.revision(of, rule)
		for _, n := range h.Nodes {
			r.restore(n)
		}
		if l.tidy(r); !known && l.Knows(of) {
			first = append(first, of)
		}
	}
	slices.SortFunc(first, Revision.Compare)
	return slices.Compact(first)
}

func (r *revision) restore(n NodeHistory) {
	failures := make([]Failure, len(n.Failures))
	for i, f := range n.Failures {
		f.At = r.in.bound(f.At)
		failures[i] = f
	}
	// The success first: otherwise what it forgives would be news, and lost at once.
	if e := r.entry(n.Node); !n.Succeeded.IsZero() {
		r.update(e, func() { r.succeed(e, r.in.bound(n.Succeeded)) })
	}
	r.fail(n.Node, r.rule.capacity(), failures...)
}
