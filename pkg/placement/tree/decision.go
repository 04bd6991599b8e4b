// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// Decision is one choice of a node, with what it was chosen from.
type Decision struct {
	// Node is the node chosen, "" if the filters refuse all of them.
	Node string
	// Steps leads from the first level to the node.
	Steps []Step
}

// Step is the choice at one level, or the last one, inside the leaf.
type Step struct {
	// What was chosen by: a level, or "node".
	What string
	// Candidates are those with something to offer, best first: the first was chosen.
	Candidates []string
}

// Explain decides one pod like Next, and says why.
func (t *Tree) Explain(fit placement.Fits) Decision {
	n := t.next(fit)
	if n == nil {
		return Decision{}
	}
	d := Decision{Node: n.Name}
	b := t.root
	for !b.isLeaf() {
		what := b.below.levels[0].String()
		if b.below.others {
			what = "spread over the other values"
		}
		step := Step{What: what}
		for _, c := range sortedOpenBranches(b) {
			step.Candidates = append(step.Candidates, c.label()+" ("+c.reason()+")")
		}
		d.Steps = append(d.Steps, step)
		b = b.children[0]
	}
	step := Step{What: "node"}
	for _, n := range sortedOpenNodes(b) {
		step.Candidates = append(step.Candidates, n.Name+" ("+n.reason()+")")
	}
	d.Steps = append(d.Steps, step)
	return d
}

func (b *branch) reason() string {
	return fmt.Sprintf("%d of the revision, %d of the workload, %s", b.tally.Revision, b.tally.Workload, b.state())
}

func (n *node) reason() string {
	t := n.Tally
	return fmt.Sprintf("%d of the revision, %d of the workload, %d pods, %s", t.Revision, t.Workload, t.All, n.state())
}

// String draws the decision: a line a step, the choice before what it was preferred to.
func (d Decision) String() string {
	if d.Node == "" {
		return "no node fits\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", d.Node)
	for _, s := range d.Steps {
		fmt.Fprintf(&out, "  %s: %s\n", s.What, s.Candidates[0])
		for _, c := range s.Candidates[1:] {
			fmt.Fprintf(&out, "    before %s\n", c)
		}
	}
	return out.String()
}
