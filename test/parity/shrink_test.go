// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import "testing"

// A failure must come out as small as it can be said.
func TestShrink(t *testing.T) {
	large := Generate(1)
	large.Nodes = append(large.Nodes, in("a", 7))
	large.Service.Tasks = 40
	fails := func(c *Cluster) bool {
		return c.Service.Tasks >= 3 && len(c.Nodes) > 0 && c.Nodes[len(c.Nodes)-1].Running >= 2
	}
	small := Shrink(large, fails)
	if len(small.Nodes) != 1 || small.Nodes[0].Running != 2 || small.Service.Tasks != 3 ||
		len(small.Service.Labels) != 0 || small.Service.CPU != 0 || small.Service.Unversioned {
		t.Errorf("shrunk to\n%s", small)
	}
}

func TestGenerateIsTheSeeds(t *testing.T) {
	for s := range uint64(20) {
		if a, b := Generate(s).String(), Generate(s).String(); a != b {
			t.Errorf("seed %d gives\n%s and\n%s", s, a, b)
		}
	}
}
