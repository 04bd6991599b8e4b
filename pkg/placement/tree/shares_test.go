// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// At every count from 1 to 100 the branches have what Sainte-Laguë gives them. With up to three
// that is never more than one pod from the exact share, which no rule of this kind promises of more.
func TestSharesAreNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := rapid.SliceOfN(rapid.Int64Range(1, 100), 2, 8).Draw(t, "shares")
		var weights strings.Builder
		var nodes []placement.Node
		for i, share := range shares {
			zone := fmt.Sprintf("z%d", i)
			fmt.Fprintf(&weights, ";weight.%s=%d", zone, share)
			nodes = append(nodes, placement.Node{Name: zone, Values: []placement.Value{{Text: zone}}})
		}
		tr := simulation.New(parseLevels(t, "spread=zone"+weights.String()), nodes...)
		got, sum := make([]int64, len(shares)), int64(0)
		for _, share := range shares {
			sum += share
		}
		for k := int64(1); k <= 100; k++ {
			for _, name := range tr.Place(1, func(string) bool { return true }) {
				var at int
				if _, err := fmt.Sscanf(name, "z%d", &at); err != nil {
					t.Fatal(err)
				}
				got[at]++
			}
			if err := sainteLague(shares, got, k); err != nil {
				t.Fatal(err)
			}
			for i := range shares {
				// The distance of got[i] from k * share / sum is at most 1.
				if d := got[i]*sum - k*shares[i]; len(shares) <= 3 && (d > sum || -d > sum) {
					t.Fatalf("shares %v, %d pods: %v", shares, k, got)
				}
			}
		}
	})
}

// sainteLague judges by brute force: the pods are as many as there are, and no pod of a branch has a
// smaller quotient share / (2n-1) than another branch's next pod would have.
func sainteLague(shares, pods []int64, k int64) error {
	for i := range shares {
		k -= pods[i]
		for j := range shares {
			if pods[i] > 0 && big.NewRat(shares[i], 2*pods[i]-1).Cmp(big.NewRat(shares[j], 2*pods[j]+1)) < 0 {
				return fmt.Errorf("shares %v, pods %v: one of branch %d belongs to branch %d", shares, pods, i, j)
			}
		}
	}
	if k != 0 {
		return fmt.Errorf("shares %v, pods %v: %d are missing", shares, pods, k)
	}
	return nil
}

// A node that says it has more than any machine does must not turn the shares round.
func TestShareOfVeryMuch(t *testing.T) {
	tr := simulation.New(parseLevels(t, "spread=zone;share=Allocatable"))
	for zone, cpus := range map[string]int64{"a": 2e13, "b": 1e13} {
		tr.Set(placement.Node{Name: zone, Values: []placement.Value{{Text: zone}}, Usage: placement.Usage{CPU: placement.Amount{Allocatable: cpus}}})
	}
	pods := map[string]int{}
	for _, name := range tr.Place(6, func(string) bool { return true }) {
		pods[name]++
	}
	if pods["a"] != 4 || pods["b"] != 2 {
		t.Errorf("zones of which one has twice as much have %v pods", pods)
	}
}
