// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// The stories in testdata are read by people first. Commands:
//
//	levels                      the tree's levels, in the syntax of annotations
//	rule [threshold=N] [half-open]
//	                            how records count; without it one failure marks a node
//	nodes                       a line a node: NAME VALUE... [pods=R/W/A] [failures=N] [unforgiven=N] [proven]
//	                            [unproven=N] [unready] [room=N] [cpus=N]
//	                            with one VALUE a level, "-" for a node without the property
//	records                     a line a node: NAME [failures=N] ..., and what is not said is nothing
//	draw                        the tree
//	explain                     one decision, and what is written of it; nothing is counted
//	place pods=N                a batch: the nodes in the order in which they were chosen, and the tree
//	rank                        all nodes that fit, a line a class
//	remove NAME...              nodes go
//
// Rewrite them with: go test ./pkg/placement/tree -run Golden -rewrite. Commit what
// changes only if you understand why.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{room: make(map[string]int)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := s.run(t, d)
			if s.tree != nil {
				if err := s.tree.Validate(); err != nil {
					d.Fatalf(t, "the tree is broken: %v", err)
				}
			}
			return out
		})
	})
}

type story struct {
	tree   *simulation.Tree
	levels int
	// room is how many more pods fit on a node; absent is any number.
	room map[string]int
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "levels":
		levels := parseLevels(t, strings.ReplaceAll(d.Input, "\n", ""))
		s.tree, s.levels = simulation.New(levels), len(levels)
		s.tree.Request = placementtest.Request
	case "nodes":
		for line := range strings.Lines(d.Input) {
			s.tree.Set(s.node(t, d, strings.Fields(line)))
		}
	case "rule":
		rule := placement.Faults{HalfOpen: d.HasArg("half-open")}
		d.MaybeScanArgs(t, "threshold", &rule.Threshold)
		s.tree.SetRule(rule)
	case "records":
		for line := range strings.Lines(d.Input) {
			words := strings.Fields(line)
			s.tree.SetRecord(words[0], s.record(t, d, words))
		}
	case "remove":
		for _, arg := range d.CmdArgs {
			s.tree.Remove(arg.Key)
		}
	case "draw":
		return s.tree.String()
	case "explain":
		d := s.tree.Explain(s.fits)
		return d.String() + (&decision.Decision{Fast: true, Steps: s.tree.Decision(d.Node)}).String() + "\n"
	case "rank":
		return s.rank()
	case "place":
		var pods int
		d.ScanArgs(t, "pods", &pods)
		return s.place(pods)
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	return ""
}

func (s *story) node(t *testing.T, d *datadriven.TestData, words []string) placement.Node {
	n := placement.Node{Name: words[0], Usage: placementtest.Usage(0)}
	for _, word := range words[1 : 1+s.levels] {
		if word == "-" {
			n.Values = append(n.Values, placement.Value{Missing: true})
		} else {
			n.Values = append(n.Values, placement.Value{Text: word})
		}
	}
	s.describe(t, d, &n, words[1+s.levels:])
	return n
}

func (s *story) record(t *testing.T, d *datadriven.TestData, words []string) placement.Record {
	n := placement.Node{Name: words[0]}
	s.describe(t, d, &n, words[1:])
	return n.Record
}

func (s *story) describe(t *testing.T, d *datadriven.TestData, n *placement.Node, words []string) {
	for _, word := range words {
		var err error
		switch key, value, _ := strings.Cut(word, "="); key {
		case "pods":
			_, err = fmt.Sscanf(value, "%d/%d/%d", &n.Tally.Revision, &n.Tally.Workload, &n.Tally.All)
			n.Usage = placementtest.Usage(n.Tally.All)
		case "failures":
			_, err = fmt.Sscan(value, &n.Failures)
		case "unforgiven":
			_, err = fmt.Sscan(value, &n.Unforgiven)
		case "proven":
			n.Proven = true
		case "unproven":
			_, err = fmt.Sscan(value, &n.Unproven)
		case "unready":
			n.Unready = true
		case "cpus":
			_, err = fmt.Sscan(value, &n.Usage.CPU.Allocatable)
		case "room":
			var room int
			_, err = fmt.Sscan(value, &room)
			s.room[n.Name] = room
		default:
			d.Fatalf(t, "node %s: unknown word %q", n.Name, word)
		}
		if err != nil {
			d.Fatalf(t, "node %s: %q: %v", n.Name, word, err)
		}
	}
}

func (s *story) fits(name string) bool {
	room, bounded := s.room[name]
	return !bounded || room > 0
}

// place decides pod by pod, so that room shrinks as it is taken.
func (s *story) place(pods int) string {
	var chosen []string
	for range pods {
		placed := s.tree.Place(1, s.fits)
		if len(placed) == 0 {
			chosen = append(chosen, "no room")
			break
		}
		chosen = append(chosen, placed[0])
		if _, bounded := s.room[placed[0]]; bounded {
			s.room[placed[0]]--
		}
	}
	return strings.Join(chosen, " ") + "\n" + s.tree.String()
}

func (s *story) rank() string {
	var out strings.Builder
	classes := make(map[int][]string)
	most := -1
	for _, r := range s.tree.Rank(s.fits) {
		classes[r.Class] = append(classes[r.Class], r.Name)
		most = max(most, r.Class)
	}
	for class := range most + 1 {
		fmt.Fprintf(&out, "%d: %s\n", class, strings.Join(classes[class], " "))
	}
	return out.String()
}
