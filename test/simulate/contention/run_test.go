// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
		if err != nil {
			t.Fatal(err)
		}
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
