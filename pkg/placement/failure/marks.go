// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Mark is a node that is to blame: by failures that are not the workload's own it is
// faulty for a revision that was tried on other nodes too.
type Mark struct {
	Revision
	Node string
	// Failures is how many it is blamed for, and Kinds what they were, the most frequent first.
	Failures int
	Kinds    []Count
	// Since is when their number rose to the threshold.
	Since time.Time
	// Elsewhere says that the revision has succeeded on another node.
	Elsewhere bool
}

// Count is the number of failures of a kind.
type Count struct {
	Kind     string
	Failures int
}

// Suspect is a node that is faulty for several workloads, which is not the fault of
// any of them.
type Suspect struct {
	Node      string
	Workloads []string
}

// Marks are all there are, by workload, revision and node.
func (l *Ledger) Marks() []Mark {
	marks := make([]Mark, 0, len(l.marked))
	for e := range l.marked {
		marks = append(marks, Mark{e.of.Revision, e.node, e.record.Failures, e.kinds(), e.since, e.of.succeeded > e.successes()})
	}
	slices.SortFunc(marks, func(a, b Mark) int {
		return cmp.Or(a.Revision.Compare(b.Revision), strings.Compare(a.Node, b.Node))
	})
	return marks
}

// kinds are those of the failures that the node is blamed for.
func (e *entry) kinds() (kinds []Count) {
	for _, f := range e.failures {
		if !e.of.rule.isRecent(f.At, e.of.in.now) || e.of.isOwn(f.Kind) {
			continue
		}
		i := slices.IndexFunc(kinds, func(k Count) bool { return k.Kind == f.Kind })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, Count{Kind: f.Kind})
		}
		kinds[i].Failures++
	}
	slices.SortFunc(kinds, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), strings.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// Suspects are the nodes that are faulty for at least so many workloads, by name.
// Revisions of one workload are one: they share their mistakes.
func (l *Ledger) Suspects(workloads int) (suspects []Suspect) {
	byNode := make(map[string][]string)
	for e := range l.marked {
		byNode[e.node] = append(byNode[e.node], e.of.Workload)
	}
	for node, names := range byNode {
		slices.Sort(names)
		if names = slices.Compact(names); len(names) >= workloads {
			suspects = append(suspects, Suspect{node, names})
		}
	}
	slices.SortFunc(suspects, func(a, b Suspect) int { return strings.Compare(a.Node, b.Node) })
	return suspects
}

// Own is a kind of failure that is the workload's own, and on how many nodes it shows.
type Own struct {
	Kind  string
	Nodes int
}

// Own are the kinds of failure that a revision shows on so many nodes, by themselves or
// with others of their class, that they are its own, by name; of so many nodes that it
// was tried on.
func (l *Ledger) Own(of Revision) (kinds []Own, tried int) {
	r, ok := l.revisions[of]
	if !ok {
		return nil, 0
	}
	for _, k := range r.kinds {
		if r.isOwn(k.name) {
			kinds = append(kinds, Own{k.name, k.nodes})
		}
	}
	return kinds, r.tried
}
