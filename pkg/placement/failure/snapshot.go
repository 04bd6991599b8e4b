// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"maps"
	"slices"
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
	// Rule is the revision's own, nil if it has none. Without it a longer window would
	// be forgotten before anybody who knows of it is heard.
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
//
// Of the nodes on which a revision has only succeeded it has as many as it takes to
// say that an error is not the revision's own: all the others would add is length.
func (l *Ledger) Snapshot() (s Snapshot) {
	for _, of := range l.Revisions() {
		r := l.revisions[of]
		h := RevisionHistory{Workload: of.Workload, Revision: of.Revision}
		if rule := r.rule; rule != l.defaults {
			h.Rule = &rule
		}
		var sound []*entry
		for _, node := range slices.Sorted(maps.Keys(r.entries)) {
			switch e := r.entries[node]; {
			case len(e.failures) > 0:
				h.Nodes = append(h.Nodes, NodeHistory{node, slices.Clone(e.failures), e.succeeded})
			case !e.succeeded.IsZero():
				sound = append(sound, e)
			}
		}
		slices.SortStableFunc(sound, func(a, b *entry) int { return b.succeeded.Compare(a.succeeded) })
		for _, e := range sound[:min(len(sound), 2*r.failing)] {
			h.Nodes = append(h.Nodes, NodeHistory{Node: e.node, Succeeded: e.succeeded})
		}
		s.Revisions = append(s.Revisions, h)
	}
	return s
}

// Restore adds what an earlier ledger knew. What is known already is not counted
// twice, and what counts for nothing by now is left out. It returns the revisions that
// were not known before: of these the ledger wants to be told all pods.
func (l *Ledger) Restore(s Snapshot) (first []Revision) {
	for _, h := range s.Revisions {
		of := Revision{h.Workload, h.Revision}
		known := l.Knows(of)
		rule := l.defaults
		if h.Rule != nil {
			rule = h.Rule.normal()
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
