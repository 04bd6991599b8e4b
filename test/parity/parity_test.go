// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var (
	cases = flag.Int("parity.cases", 2000, "number of random clusters")
	seed  = flag.Uint64("parity.seed", 0, "seed of the first cluster, 0 for ESPALIER_SEED's; the next has the next number")
)

func TestMain(m *testing.M) {
	flag.Parse()
	Silence()
	os.Exit(m.Run())
}

// TestRandomClusters holds ours beside SwarmKit's on random clusters.
func TestRandomClusters(t *testing.T) {
	first := *seed
	if first == 0 {
		first = placementtest.Seed()
	}
	t.Logf("%d random clusters: -parity.seed=%d -parity.cases=%d", *cases, first, *cases)
	var sum summary
	failed := 0
	for i := range uint64(*cases) {
		if tryOne(t, &sum, first+i) {
			continue
		}
		if failed++; failed == enough {
			t.Fatalf("%d clusters have failed, the rest is not tried", failed)
		}
	}
	t.Log(sum.String())
	if *cases >= 1000 {
		sum.check(t)
	}
}

// enough failures to see what they have in common; each takes a while to shrink.
const enough = 5

func tryOne(t *testing.T, sum *summary, s uint64) bool {
	t.Helper()
	c := Generate(s)
	r := run(t.Context(), c)
	sum.add(c, r)
	if r.ok() {
		return true
	}
	// SwarmKit draws lots: a smaller cluster may fail only now and then.
	small := Shrink(c, func(c *Cluster) bool {
		for range 3 {
			if !run(t.Context(), c).ok() {
				return true
			}
		}
		return false
	})
	shrunk := run(t.Context(), small)
	for range 20 {
		if !shrunk.ok() {
			break
		}
		shrunk = run(t.Context(), small)
	}
	t.Errorf("cluster -parity.seed=%d -parity.cases=1\n%s\nshrunk to\n%s", s, r.String(c), shrunk.String(small))
	return false
}

// result is what became of one cluster.
type result struct {
	err                error
	swarm, all, newest Placed
	byAll, byNewest    Verdict
	// differ are nodes on which our filters and the mirror differ, closed why nodes were.
	differ []string
	closed map[Refusal]bool
}

func run(ctx context.Context, c *Cluster) (r result) {
	if r.swarm, r.err = Swarm(ctx, c); r.err != nil {
		return r
	}
	if r.differ, r.closed, r.err = Differ(c); r.err != nil {
		return r
	}
	if r.all, r.err = Ours(c, All); r.err != nil {
		return r
	}
	if r.newest, r.err = Ours(c, Newest); r.err != nil {
		return r
	}
	r.byAll = Compare(c, All, r.all, r.swarm)
	r.byNewest = Compare(c, Newest, r.newest, r.swarm)
	return r
}

func (r result) ok() bool {
	return r.err == nil && len(r.differ) == 0 && len(r.byAll.Findings) == 0 && len(r.byNewest.Findings) == 0
}

func (r result) String(c *Cluster) string {
	var out strings.Builder
	out.WriteString(c.Table([]Column{{"swarmkit", r.swarm}, {"ours", r.all}, {"ours, newest", r.newest}}))
	if r.err != nil {
		fmt.Fprintf(&out, "error: %v\n", r.err)
	}
	for _, d := range r.differ {
		fmt.Fprintln(&out, d)
	}
	for _, f := range r.byAll.Findings {
		fmt.Fprintf(&out, "counting %s: %s\n", All, f)
	}
	for _, f := range r.byNewest.Findings {
		fmt.Fprintf(&out, "counting %s: %s\n", Newest, f)
	}
	return out.String()
}

// summary counts what the random clusters were like: a comparison in which nothing ever was uneven, full or faulty would say nothing.
type summary struct {
	clusters, even, uneven, refused, failed int
	byLevels                                [4]int
	// closed are the clusters in which a filter has closed a node.
	closed map[Refusal]int
}

func (s *summary) add(c *Cluster, r result) {
	s.clusters++
	s.byLevels[len(c.Service.Labels)]++
	if len(r.byAll.Uneven) == 0 {
		s.even++
	} else {
		s.uneven++
	}
	if s.closed == nil {
		s.closed = make(map[Refusal]int)
	}
	for why := range r.closed {
		s.closed[why]++
	}
	if r.swarm.Total() < c.Service.Tasks {
		s.refused++
	}
	for i := range c.Nodes {
		if c.Nodes[i].Faulty() {
			s.failed++
			break
		}
	}
}

func (s *summary) String() string {
	return fmt.Sprintf("%d clusters, %v with none, one, two, three preferences; SwarmKit is as even as can be in %d and less in %d; "+
		"in %d not all tasks fit, in %d nodes are faulty; clusters with a node that %v", s.clusters, s.byLevels, s.even, s.uneven, s.refused, s.failed, s.closed)
}

// check sees that every kind of cluster has been among them.
func (s *summary) check(t *testing.T) {
	t.Helper()
	for what, n := range map[string]int{
		"on which SwarmKit is even": s.even, "on which SwarmKit is not even": s.uneven, "that are too small": s.refused, "with faulty nodes": s.failed,
	} {
		if n < s.clusters/50 {
			t.Errorf("only %d of %d clusters %s", n, s.clusters, what)
		}
	}
	for _, why := range []Refusal{notReady, noConstraint, noPlatform, noPort, noRoom, noResources} {
		if n := s.closed[why]; n < s.clusters/50 {
			t.Errorf("only %d of %d clusters have a node that %s", n, s.clusters, why)
		}
	}
}

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
