// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// Verdict is what a comparison came to.
type Verdict struct {
	// Findings are what is wrong with ours, nothing if all is as promised.
	Findings []string
	// Uneven are the places where SwarmKit could have placed a task better.
	Uneven []string
}

// Compare judges our placement beside SwarmKit's.
//
// Ours must have placed as many tasks as there is room for, and no fewer than
// SwarmKit; put none on a faulty node while a sound one had room; and be as even as
// can be at every level. Then, branch by branch, wherever the two gave a branch the same
// number of tasks: ours must not be less even, and where SwarmKit's division
// is as even as can be, the sorted counts must be the same. (Which of two equal
// branches gets the odd task is a tie, and SwarmKit draws lots; below such a pair there
// is nothing to compare.)
func Compare(c *Cluster, by Counting, ours, swarm Placed) Verdict {
	var v Verdict
	complain := func(format string, args ...any) { v.Findings = append(v.Findings, fmt.Sprintf(format, args...)) }

	room, sound := 0, 0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if ours[n.Name] > c.Room(n) {
			complain("%s has room for %d and got %d", n.Name, c.Room(n), ours[n.Name])
		}
		if swarm[n.Name] > c.Room(n) {
			complain("%s has room for %d, and SwarmKit found room for %d: the filters differ", n.Name, c.Room(n), swarm[n.Name])
		}
		room = min(room+c.Room(n), evenness.Unlimited)
		if !n.Faulty() {
			sound = min(sound+c.Room(n), evenness.Unlimited)
		}
	}
	want := min(c.Service.Tasks, room)
	if ours.Total() != want {
		complain("%d tasks placed, and there is room for %d", ours.Total(), want)
	}
	if swarm.Total() != want {
		complain("SwarmKit placed %d tasks, and there is room for %d: the filters differ", swarm.Total(), want)
	}
	onFaulty := func(p Placed) (tasks int) {
		for i := range c.Nodes {
			if c.Nodes[i].Faulty() {
				tasks += p[c.Nodes[i].Name]
			}
		}
		return tasks
	}
	if must := max(0, want-sound); onFaulty(ours) != must {
		complain("%d tasks on faulty nodes, and %d must be", onFaulty(ours), must)
		return v
	}
	// Faulty nodes count as full from here on: who puts nothing on them must not be
	// blamed for it. Who does has another division of other tasks.
	levels, before := evennessOf(c, by, nil)
	_, after := evennessOf(c, by, ours)
	_, theirs := evennessOf(c, by, swarm)
	if onFaulty(ours) == 0 {
		v.Findings = append(v.Findings, evenness.Check(levels, after)...)
	}
	if onFaulty(swarm) > onFaulty(ours) {
		v.Uneven = append(v.Uneven, fmt.Sprintf("%d tasks on faulty nodes, and %d must be", onFaulty(swarm), onFaulty(ours)))
		return v
	}
	v.Uneven = evenness.Check(levels, theirs)
	if len(v.Findings) == 0 && onFaulty(ours) == 0 {
		w := walk{labels: c.Service.Labels, v: &v}
		w.compare(nil, evenness.Grow(levels, before), evenness.Grow(levels, after), evenness.Grow(levels, theirs))
	}
	return v
}

// walk goes down the branches of one cluster in both placements.
type walk struct {
	labels []string
	v      *Verdict
}

// compare compares the children of the branch at path, and then theirs.
func (w *walk) compare(path []string, before, ours, swarm *evenness.Branch) {
	if ours.Count != swarm.Count || len(before.Children) == 0 {
		return
	}
	where := w.where(path)
	complain := func(what string) {
		w.v.Findings = append(w.v.Findings, fmt.Sprintf("%s: ours is %s, SwarmKit's %s, which is %s", where, counts(ours), counts(swarm), what))
	}
	// Two measures that share no code must agree on SwarmKit.
	uneven := slices.ContainsFunc(w.v.Uneven, func(s string) bool { return strings.HasPrefix(s, where+": ") })
	switch c := slices.Compare(heights(before, ours), heights(before, swarm)); {
	case c > 0:
		complain("more even")
	case c < 0 && !uneven:
		complain("as even as can be, and ours still lower")
	case c == 0 && uneven:
		complain("said to be uneven, and ours is as high")
	case c == 0 && !slices.Equal(sortedCounts(ours), sortedCounts(swarm)):
		complain("as even, with other counts")
	}
	for i := range before.Children {
		w.compare(append(path, before.Children[i].Name), before.Children[i], ours.Children[i], swarm.Children[i])
	}
}

// where names the children of a branch as the findings of package evenness do.
func (w *walk) where(path []string) string {
	over := "node"
	if len(path) < len(w.labels) {
		over = w.labels[len(path)]
	}
	if len(path) == 0 {
		return "spread over " + over
	}
	return "spread over " + over + " in " + strings.Join(path, "/")
}

// heights says on how many tasks each new task lies in its branch, itself included,
// highest first. Of two divisions of as many tasks the more even one is lower at the first difference.
func heights(before, after *evenness.Branch) []int {
	var hs []int
	for i := range before.Children {
		for h := before.Children[i].Count + 1; h <= after.Children[i].Count; h++ {
			hs = append(hs, h)
		}
	}
	slices.SortFunc(hs, func(a, b int) int { return b - a })
	return hs
}

func sortedCounts(b *evenness.Branch) []int {
	var cs []int
	for _, c := range b.Children {
		cs = append(cs, c.Count)
	}
	slices.Sort(cs)
	return cs
}

func counts(b *evenness.Branch) string {
	var words []string
	for _, c := range b.Children {
		words = append(words, fmt.Sprintf("%s:%d", c.Name, c.Count))
	}
	return strings.Join(words, " ")
}

// evennessOf is the cluster with a placement, in the words of package evenness.
func evennessOf(c *Cluster, by Counting, placed Placed) ([]evenness.Level, []evenness.Node) {
	var levels []evenness.Level
	for _, l := range c.Service.Labels {
		levels = append(levels, evenness.Level{Name: l})
	}
	var nodes []evenness.Node
	for i := range c.Nodes {
		n := &c.Nodes[i]
		e := evenness.Node{Name: n.Name, Fixed: by.count(n)}
		e.Count = e.Fixed + placed[n.Name]
		e.Room = e.Count
		if !n.Faulty() {
			e.Room = min(e.Fixed+c.Room(n), evenness.Unlimited)
		}
		for _, l := range c.Service.Labels {
			e.Values = append(e.Values, n.Labels[l])
		}
		nodes = append(nodes, e)
	}
	return levels, nodes
}
