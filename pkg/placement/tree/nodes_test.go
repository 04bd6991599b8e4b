// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"testing"
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
