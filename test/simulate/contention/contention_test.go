// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
)

// small draws a config that is played in a moment.
func small(t *rapid.T) Config {
	return Config{
		Nodes: rapid.IntRange(10, 60).Draw(t, "nodes"), Slots: rapid.IntRange(1, 6).Draw(t, "slots"), Fill: rapid.Float64Range(0.2, 0.95).Draw(t, "fill"),
		Pods: rapid.IntRange(1, 200).Draw(t, "pods"), Replicas: rapid.IntRange(1, 6).Draw(t, "replicas"), Candidates: rapid.IntRange(1, 4).Draw(t, "m"),
		Ties: rapid.SampledFrom([]Ties{ByName, ByHash}).Draw(t, "ties"), Failures: rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "failures"),
		SampledNodes: rapid.SampledFrom([]sampling.BasisPoints{0, 1000, 5000}).Draw(t, "Np"), SampledGroups: rapid.SampledFrom([]sampling.BasisPoints{0, 3300}).Draw(t, "Cp"),
		Strategy: rapid.SampledFrom([]sampling.Strategy{sampling.Random, sampling.RoundRobin}).Draw(t, "strategy"), Seed: rapid.Uint64().Draw(t, "seed"),
	}
}

// Whatever is played, no node has more than it has room for, every pod is bound or given up, what replicas have seen
// at the end is what is, and a second time comes to the same.
func TestNothingIsLostOrPlacedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := small(t)
		first, err := Run(c)
		placementtest.Must(t, err)
		if first.Bound+first.GivenUp != c.Pods {
			t.Fatalf("%d pods: %+v", c.Pods, first)
		}
		if second, _ := Run(c); second != first {
			t.Fatalf("first %+v, then %+v", first, second)
		}
		p := newPlay(c.withDefaults())
		p.run()
		for node := range c.Nodes {
			if p.agent.reserved[node] != 0 || p.agent.bound[node] > int64(c.Slots) || p.agent.bound[node] < 0 {
				t.Fatalf("node %d of %d slots: %d bound, %d reserved", node, c.Slots, p.agent.bound[node], p.agent.reserved[node])
			}
			for id, r := range p.replicas {
				if b, ok := r.scheduler.(*byTree); ok && b.used[node] != p.agent.bound[node] {
					t.Fatalf("replica %d has seen %d pods on node %d, where %d are", id, b.used[node], node, p.agent.bound[node])
				}
			}
		}
	})
}

// One scheduler alone knows of all that is bound, and is refused nothing.
func TestOneSchedulerHasNoConflicts(t *testing.T) {
	r, err := Run(Config{Nodes: 100, Fill: 0.98, Pods: 500, Replicas: 1})
	if err != nil || r.Conflicts > 0 || r.Bound != 500 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWhatCannotBePlayed(t *testing.T) {
	good := Config{Nodes: 10, Fill: 0.5, Pods: 10}
	for name, change := range map[string]func(*Config){
		"nodes": func(c *Config) { c.Nodes = 0 }, "groups": func(c *Config) { c.Groups = 11 }, "slots": func(c *Config) { c.Slots = -1 },
		"fill": func(c *Config) { c.Fill = 1 }, "pods": func(c *Config) { c.Pods = 0 }, "replicas": func(c *Config) { c.Replicas = -1 },
		"candidates": func(c *Config) { c.Candidates = -1 }, "ties": func(c *Config) { c.Ties = "luck" }, "Cp": func(c *Config) { c.SampledGroups = 10001 },
		"Np": func(c *Config) { c.SampledNodes = -1 }, "failures": func(c *Config) { c.Failures = 1 }, "attempts": func(c *Config) { c.Attempts = -1 },
		"strategy": func(c *Config) { c.Strategy = "Best" }, "decide": func(c *Config) { c.Decide = -1 }, "send": func(c *Config) { c.Send = -1 },
		"bind": func(c *Config) { c.Bind = -1 }, "lag": func(c *Config) { c.Lag = -1 },
	} {
		c := good
		change(&c)
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Run(good); err != nil {
		t.Error(err)
	}
	// What is no number is in no range.
	for name, c := range map[string]Config{"fill": {Nodes: 10, Fill: math.NaN(), Pods: 10}, "failures": {Nodes: 10, Fill: 0.5, Pods: 10, Failures: math.NaN()}} {
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The smallest cluster: one node with one place, where at most one pod of several is ever committed at a time.
func TestOneNode(t *testing.T) {
	for _, sampled := range []sampling.BasisPoints{0, 1, sampling.All} {
		r, err := Run(Config{Nodes: 1, Slots: 1, Fill: 0.5, Pods: 5, Replicas: 8, Candidates: 10, SampledNodes: sampled})
		if err != nil || r.Bound+r.GivenUp != 5 || r.Bound == 0 {
			t.Errorf("Np %d: %+v, %v", sampled, r, err)
		}
	}
}

// total is what a config comes to with three seeds.
func total(t *testing.T, c Config) (sum Result) {
	t.Helper()
	for seed := range uint64(3) {
		c.Seed = seed
		r, err := Run(c)
		placementtest.Must(t, err)
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

// Vector VV5: of a node of 4000m and 8 GiB, 2000m and 6 GiB are free.
func TestVector_VV5(t *testing.T) {
	for _, tc := range []struct {
		cpu, memory int64 // free
		least, most int64
	}{{2000, 6, 63, 37}, {4000, 8, 100, 0}, {0, 0, 0, 100}} {
		node := []Amount{{4000, tc.cpu}, {8, tc.memory}}
		if least, most := LeastAllocated(node...), MostAllocated(node...); least != tc.least || most != tc.most {
			t.Errorf("with %dm and %d free: least %d, most %d; want %d, %d", tc.cpu, tc.memory, least, most, tc.least, tc.most)
		}
	}
}

// Vector VV6: one plugin has scored a node 80 where it was sampled, and another one 40 where it was decided about.
func TestVector_VV6(t *testing.T) {
	if got := Combine(80, 1, 40); got != 60 {
		t.Errorf("got %d, want 60", got)
	}
	if got := Combine(0, 0); got != 0 {
		t.Errorf("without plugins it is %d", got)
	}
}

func binds() error { return nil }

// Vector VV9: pods are committed to a node of 1000m together. What is reserved is not free, whether it fits or not.
func TestVector_VV9(t *testing.T) {
	for name, tc := range map[string]struct {
		pods              []int64
		reserved, in, end int64 // free when all are reserved, how many fit, and what is free then
	}{
		"two of 600m":   {[]int64{600, 600}, -200, 1, 400},
		"three of 400m": {[]int64{400, 400, 400}, -200, 2, 200},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAgent([]int64{1000})
			for _, request := range tc.pods {
				a.Reserve(0, request, 0)
			}
			if got := a.Available(0); got != tc.reserved {
				t.Errorf("%dm are free when all are reserved, want %d", got, tc.reserved)
			}
			for i, request := range tc.pods {
				err := a.Commit(0, request, binds)
				if fits := int64(i) < tc.in; fits != (err == nil) || !fits && !errors.Is(err, ErrConflict) {
					t.Errorf("pod %d: %v", i, err)
				}
			}
			if got := a.Available(0); got != tc.end {
				t.Errorf("%dm are free in the end, want %d", got, tc.end)
			}
		})
	}
}

// Vector VV10: a binding that fails leaves nothing reserved, and the pod goes to its next candidate.
func TestVector_VV10(t *testing.T) {
	a := NewAgent([]int64{1000, 1000})
	for node, bind := range []func() error{func() error { return errBind }, binds} {
		a.Reserve(node, 600, 0)
		if err := a.Commit(node, 600, bind); (err == nil) != (node == 1) {
			t.Errorf("node %d: %v", node, err)
		}
	}
	if got := []int64{a.Available(0), a.Available(1)}; !slices.Equal(got, []int64{1000, 400}) {
		t.Errorf("%v are free, want 1000 and 400", got)
	}
	r, err := Run(Config{Nodes: 50, Fill: 0.5, Pods: 100, Candidates: 3, Failures: 0.5, Attempts: 100})
	if err != nil || r.Bound != 100 || r.Refused < 50 || r.Conflicts >= r.Refused/3+1 {
		t.Errorf("with half of all bindings failing: %+v, %v", r, err)
	}
}

// Vector VV12: pods have come to nodes 100, 10 and 50 ago.
func TestVector_VV12(t *testing.T) {
	if got := LeastRecentlyUsed(1000, []int64{900, 990, 950}); !slices.Equal(got, []int64{100, 10, 50}) {
		t.Errorf("got %v, want 100, 10, 50", got)
	}
	if got := LeastRecentlyUsed(0, []int64{0, 0}); !slices.Equal(got, []int64{0, 0}) {
		t.Errorf("at the beginning: %v", got)
	}
}

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "100"})
	m.Run()
}
