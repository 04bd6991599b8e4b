// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// Nodes that tie are in the order of their weights, and those of one weight in that of their names, whenever they come and go. A weight
// is asked for once, however often they are sorted.
func TestNodesAreInTheOrderOfTheirWeights(t *testing.T) {
	asked := 0
	n := NewNodes(0)
	n.Weight = func(name string) uint64 { asked++; return uint64('9' - name[0]) } // the highest digit first
	for i := range 100 {
		n.Set(fmt.Sprintf("%02d", i), Facts{})
	}
	for _, gone := range []string{"99", "10", "42"} {
		n.Remove(gone)
		n.All()
	}
	n.Set("1", Facts{}) // at the place of one that is gone
	var want []string
	for weight := range 10 {
		if weight == 8 {
			want = append(want, "1")
		}
		for i := range 10 {
			if name := fmt.Sprintf("%d%d", 9-weight, i); !slices.Contains([]string{"99", "10", "42"}, name) {
				want = append(want, name)
			}
		}
	}
	if got := n.Names(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if asked != 101 {
		t.Errorf("the weights of 101 nodes were asked for %d times", asked)
	}
}

// A rule that changes costs nothing where there is no record for it to count: pods of one tally may come under two rules in turn.
func TestRuleWithoutRecords(t *testing.T) {
	nodes := NewNodes(2)
	a, b := nodes.Set("a", Facts{}), nodes.Set("b", Facts{})
	tally := NewTally(NewTopology(nodes, nil, nil))
	tally.SetPods(a, 1, 1)
	entries := func() uintptr { return reflect.ValueOf(tally.pods).Pointer() }
	before := entries()
	for threshold := range 5 {
		tally.SetRule(placement.Faults{Threshold: threshold + 1})
	}
	if entries() != before {
		t.Error("all entries were made anew without a record")
	}
	tally.SetRecord(b, placement.Record{Failures: 3})
	tally.SetRule(placement.Faults{Threshold: 2})
	if entries() == before {
		t.Error("a record counts as under the rule before")
	}
	if revision, _ := tally.Pods(a); revision != 1 {
		t.Errorf("%d pods are left", revision)
	}
	if err := tally.validate(); err != nil {
		t.Error(err)
	}
}
