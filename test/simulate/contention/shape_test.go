// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"fmt"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
)

// total is what a config comes to with three seeds.
func total(t *testing.T, c Config) (sum Result) {
	t.Helper()
	for seed := range uint64(3) {
		c.Seed = seed
		r, err := Run(c)
		if err != nil {
			t.Fatal(err)
		}
		sum.Bound += r.Bound
		sum.GivenUp += r.GivenUp
		sum.Conflicts += r.Conflicts
		sum.Refused += r.Refused
	}
	return sum
}

// Vector VV13: of four schedulers that sample nodes of ten groups, with three candidates at most a third of the pods go back that go back
// with one, as long as a tenth of the room is free. When next to none is, all want the few nodes that have some, and it is only fewer: the
// seed's gain is gone there, too.
func TestVector_VV13(t *testing.T) {
	for _, of := range []struct {
		nodes  int
		np, cp []sampling.BasisPoints
	}{
		{1000, []sampling.BasisPoints{400, 800, 1200, 1600}, []sampling.BasisPoints{1000, 5000, sampling.All}},
		{20000, []sampling.BasisPoints{400, 1600}, []sampling.BasisPoints{sampling.All}}, // the others have next to no conflicts
	} {
		for _, np := range of.np {
			for _, cp := range of.cp {
				for fill, most := range map[float64]float64{0.5: 1. / 3, 0.9: 1. / 3, 0.99: 1} {
					c := Config{Nodes: of.nodes, Fill: fill, Pods: 1000, SampledNodes: np, SampledGroups: cp, Candidates: 1}
					one := total(t, c)
					c.Candidates = 3
					three := total(t, c)
					t.Logf("%6d nodes, Np %4d, Cp %5d, %.0f %% taken: %4d and %4d conflicts", of.nodes, np, cp, 100*fill, one.Conflicts, three.Conflicts)
					if float64(three.Conflicts) > most*float64(one.Conflicts) {
						t.Errorf("%d nodes, Np %d, Cp %d, %.0f %% taken: %d conflicts with three candidates, %d with one", of.nodes, np, cp, 100*fill, three.Conflicts, one.Conflicts)
					}
				}
			}
		}
	}
}

// Replicas that order equal nodes each in its own way have at most half the conflicts of those that go by names, as long as there are many
// equals: where a node takes one pod, all free ones are, until four fifths of the room are taken. Where it takes more, the load comes first:
// from seven tenths on few nodes are the emptiest, and all replicas want these.
func TestHashTiesHaveHalfTheConflicts(t *testing.T) {
	for slots, fills := range map[int][]float64{1: {0.5, 0.6, 0.7, 0.79}, 2: {0.5, 0.6}, 4: {0.5, 0.6}, 8: {0.5, 0.6}} {
		for _, fill := range fills {
			t.Run(fmt.Sprintf("%d slots, %.0f %% taken", slots, 100*fill), func(t *testing.T) {
				c := Config{Nodes: 1000, Slots: slots, Fill: fill, Pods: 1000, Ties: ByName}
				names := total(t, c)
				c.Ties = ByHash
				hashes := total(t, c)
				t.Logf("%d conflicts with names, %d with hashes", names.Conflicts, hashes.Conflicts)
				if 2*hashes.Conflicts > names.Conflicts {
					t.Errorf("%d conflicts with hashes, %d with names", hashes.Conflicts, names.Conflicts)
				}
			})
		}
	}
}
