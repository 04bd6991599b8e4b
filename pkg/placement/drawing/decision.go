// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Decision is one choice of a node, with what it was chosen from.
type Decision struct {
	// Node is the node chosen, "" if the filters refuse all of them.
	Node string
	// Steps leads from the first level to the node.
	Steps []Step
}

// Step is the choice of a branch at one level. The last step is the choice of a node inside the last branch.
type Step struct {
	// What names the level, or is "node" in the last step.
	What string
	// Candidates describes the branches or nodes that are open, best first. The first one was chosen.
	Candidates []string
}

// Explain decides one pod like tree.View.Next, and says why.
func Explain(v tree.View, fit tree.Fit) Decision {
	node, ok := v.Next(fit)
	if !ok {
		return Decision{}
	}
	d := Decision{Node: v.Topology.Name(node)}
	for branches := v.Outline().Below; len(branches) > 0; branches = branches[0].Below {
		branches = slices.DeleteFunc(branches, func(b tree.Branch) bool { return !b.Open })
		step := Step{What: branches[0].What}
		for i := range branches {
			step.Candidates = append(step.Candidates, reason(&branches[i]))
		}
		d.Steps = append(d.Steps, step)
	}
	return d
}

func reason(b *tree.Branch) string {
	text := fmt.Sprintf("%s (%d of the revision, %d of the workload, ", b.Label, b.Revision, b.Workload)
	if b.What == "node" {
		text += fmt.Sprintf("%d pods, ", b.Pods)
	}
	return text + b.State + ")"
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
