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
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
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
		levels, err := level.Parse("spread=zone" + weights.String())
		if err != nil {
			t.Fatal(err)
		}
		tr := simulation.New(levels, nodes...)
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

// The example of the contract: at eight pods 70/20/10 is 5.6/1.6/0.8.
func TestSharesOf70To20To10(t *testing.T) {
	levels, err := level.Parse("spread=zone;weight.a=70;weight.b=20;weight.c=10")
	if err != nil {
		t.Fatal(err)
	}
	var nodes []placement.Node
	for _, zone := range []string{"a", "b", "c"} {
		nodes = append(nodes, placement.Node{Name: zone, Values: []placement.Value{{Text: zone}}})
	}
	got := map[string]int{}
	for _, name := range simulation.New(levels, nodes...).Place(8, func(string) bool { return true }) {
		got[name]++
	}
	if got["a"] != 5 || got["b"] != 2 || got["c"] != 1 {
		t.Errorf("eight pods are %v, want 5/2/1", got)
	}
}

// What the nodes of a zone have of CPU is its share, however many they are: zones of 40, 20 and 8 CPUs take 68 pods
// in turn so that none is ever more than one pod off. Nodes that come change it.
func TestShareAllocatable(t *testing.T) {
	levels, err := level.Parse("spread=zone;share=Allocatable")
	if err != nil {
		t.Fatal(err)
	}
	tr := simulation.New(levels)
	join := func(name, zone string, cpus int64) {
		tr.Set(placement.Node{Name: name, Values: []placement.Value{{Text: zone}}, Usage: placement.Usage{CPU: placement.Amount{Allocatable: cpus}}})
	}
	for i := range 10 {
		join(fmt.Sprint("a", i), "a", 4)
	}
	join("b0", "b", 20)
	join("c0", "c", 5)
	join("c1", "c", 3)
	pods := map[string]int64{}
	place := func(most int64, has map[string]int64, sum int64) {
		t.Helper()
		for k := pods["a"] + pods["b"] + pods["c"] + 1; k <= most; k++ {
			for _, name := range tr.Place(1, func(string) bool { return true }) {
				pods[name[:1]]++
			}
			for zone, cpus := range has {
				if d := pods[zone]*sum - k*cpus; d > sum || -d > sum {
					t.Fatalf("of %d pods %v are in zones of %v CPUs", k, pods, has)
				}
			}
		}
	}
	place(68, map[string]int64{"a": 40, "b": 20, "c": 8}, 68)
	join("c2", "c", 32)
	place(100, nil, 1)
	if pods["c"] < 38 {
		t.Errorf("when zone c is as large as a, it has %d of 100 pods", pods["c"])
	}
}

// A node that says it has more than any machine does must not turn the shares round.
func TestShareOfVeryMuch(t *testing.T) {
	levels, err := level.Parse("spread=zone;share=Allocatable")
	if err != nil {
		t.Fatal(err)
	}
	tr := simulation.New(levels)
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
