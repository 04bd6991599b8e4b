// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strings"
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
func (v View) Explain(fit Fit) Decision {
	node, ok := v.Next(fit)
	if !ok {
		return Decision{}
	}
	d := Decision{Node: v.Topology.nodes.Name(node)}
	for limbs := v.survey().root(); len(limbs) > 0; limbs = limbs[0].below {
		limbs = slices.DeleteFunc(limbs, func(l limb) bool { return !l.open })
		step := Step{What: limbs[0].what}
		for i := range limbs {
			step.Candidates = append(step.Candidates, limbs[i].reason())
		}
		d.Steps = append(d.Steps, step)
	}
	return d
}

func (l *limb) reason() string {
	text := fmt.Sprintf("%s (%d of the revision, %d of the workload, ", l.label, l.figures.revision, l.figures.workload)
	if l.what == "node" {
		text += fmt.Sprintf("%d pods, ", l.figures.pods)
	}
	return text + l.figures.state + ")"
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
