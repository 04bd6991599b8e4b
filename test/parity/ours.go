// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// Counting is which of a service's tasks a spread counts first.
type Counting string

const (
	// All versions alike, which is SwarmKit's rule: countRevisions: All.
	All Counting = "all versions"
	// Newest version first, older ones as a tie-break: our default.
	Newest Counting = "the newest version"
)

// count is how many tasks of the service a spread sees on the node.
func (by Counting) count(n *Node) int {
	if by == All {
		return n.Running + n.Older
	}
	return n.Running
}

// Ours lets the spread tree place the new tasks where our filters allow them.
func Ours(c *Cluster, by Counting) (Placed, error) {
	levels, err := Levels(c.Service.Labels)
	if err != nil {
		return nil, err
	}
	f, err := newFilters(c)
	if err != nil {
		return nil, err
	}
	t := simulation.New(levels)
	nodes := make(map[string]*Node)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		t.Set(placementNode(n, c.Service.Labels, by))
		nodes[n.Name] = n
	}
	placed := Placed{}
	for _, name := range t.Place(c.Service.Tasks, func(name string) bool {
		n := nodes[name]
		tally, ok := t.Tally(name)
		return ok && f.refusal(n, tally.Revision-int64(by.count(n))) == ""
	}) {
		placed[name]++
	}
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("the tree is broken: %w", err)
	}
	return placed, nil
}

// Levels reads SwarmKit's preferences in the spelling in which they would be copied
// into an annotation.
func Levels(labels []string) ([]level.Level, error) {
	if len(labels) == 0 {
		return nil, nil
	}
	return level.Parse("spread=node.labels." + strings.Join(labels, ",spread=node.labels."))
}

func placementNode(n *Node, labels []string, by Counting) placement.Node {
	counted := int64(by.count(n))
	workload := int64(n.Running + n.Older)
	all := workload + int64(n.Others)
	if len(n.Taken) > 0 {
		all++
	}
	node := placement.Node{
		Name:    n.Name,
		Tally:   placement.Tally{Revision: counted, Workload: workload, All: all},
		Unready: n.State == Down,
	}
	if n.Faulty() {
		node.Failures = n.Failures
	}
	for _, l := range labels {
		v, ok := n.Labels[l]
		node.Values = append(node.Values, placement.Value{Text: v, Missing: !ok})
	}
	return node
}
