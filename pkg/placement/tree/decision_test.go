// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
)

// What is written of a decision is what its drawing has: at each level where there was something to choose the branch chosen and the
// first of the others, with their counts. The drawing ranks all nodes, and what is written asks for the best two.
func TestDecisionIsThatOfTheDrawing(t *testing.T) {
	checkShare(t, 10, func(t *rapid.T) {
		c := drawCluster(t, ordinary(t))
		for i := range c.nodes {
			c.nodes[i].Unready = false // they are drawn beside ready ones, and never chosen from
		}
		s := grow(t, c)
		name, ok := s.next()
		if !ok {
			return
		}
		drawn := slices.DeleteFunc(s.tree.Explain(s.fits).Steps, func(d drawing.Step) bool { return len(d.Candidates) < 2 })
		steps := slices.DeleteFunc(s.tree.Decision(name), func(d decision.Step) bool { return d.Next.Name == "" })
		if len(drawn) != len(steps) {
			t.Fatalf("%d choices are written, and %d drawn\n%v\n%v", len(steps), len(drawn), steps, drawn)
		}
		for i, step := range steps {
			for at, o := range []decision.Option{step.Chosen, step.Next} {
				if text := drawn[i].Candidates[at]; !counts(text, step.Level, o) {
					t.Errorf("%+v is written, and drawn is %s", o, text)
				}
			}
			if step.Relation == decision.InsteadOf {
				t.Errorf("%+v: what is chosen comes first", step)
			}
		}
		if last := s.tree.Decision(name); len(last) > 0 && last[len(last)-1].Level == decision.Node && last[len(last)-1].Chosen.Name != name {
			t.Errorf("%+v does not end with %s", last, name)
		}
		d := decision.Decision{Steps: s.tree.Decision(name)}
		if read, err := decision.Parse(d.String()); err != nil || !read.Cut && !slices.Equal(read.Steps, d.Steps) {
			t.Errorf("%s is read as %+v, %v", d.String(), read, err)
		}
	})
}

// counts reports that a drawing is of an option. Where each node has a value of its own, it is drawn by that.
func counts(text, level string, o decision.Option) bool {
	name := o.Name
	switch {
	case level == decision.Node:
		name = ""
	case name == decision.NoValue:
		name = "(no value)"
	}
	return strings.HasPrefix(text, name) && strings.Contains(text, fmt.Sprintf("(%d of the revision, %d of the workload, ", o.Revision, o.Workload))
}
