// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var (
	// checksInAll is how many random clusters the properties of this package are
	// tried on, unless -rapid.checks says another number; checkShare divides it.
	checksInAll = 50_000
	// seed is given, or 0: then every property draws one of its own from seeds, so that no two of them go through the same clusters.
	seed  uint64
	seeds *rand.Rand
)

// TestMain settles how many clusters are tried and from which seed, and says so: a run that fails can be had again with -rapid.seed.
func TestMain(m *testing.M) {
	flag.Parse()
	given := make(map[string]string)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() })
	if s, ok := given["rapid.checks"]; ok {
		checksInAll, _ = strconv.Atoi(s) // the flag package has parsed it before
	}
	if s, ok := given["rapid.seed"]; ok {
		seed, _ = strconv.ParseUint(s, 0, 64)
	}
	if _, ok := given["rapid.nofailfile"]; !ok {
		// The seed is enough; a file in the source tree would be one more thing to clean.
		setFlag("rapid.nofailfile", "true")
	}
	base := placementtest.Seed()
	seeds = rand.New(rand.NewPCG(base, 0))
	fmt.Fprintf(os.Stdout, "properties: %d random clusters, base seed %d (rapid.seed %d)\n", checksInAll, base, seed)
	os.Exit(m.Run())
}

// checkShare tries a property on its share of the clusters, in percent.
func checkShare(t *testing.T, percent int, property func(*rapid.T)) {
	t.Helper()
	s := seed
	if s == 0 {
		s = seeds.Uint64()
	}
	setFlag("rapid.seed", strconv.FormatUint(s, 10))
	setFlag("rapid.checks", strconv.Itoa(max(1, checksInAll*percent/100)))
	t.Logf("-run='^%s$' -rapid.seed=%d", t.Name(), s)
	rapid.Check(t, property)
}

func setFlag(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}

// size bounds what is drawn.
type size struct {
	levels, nodes int
	healthy       bool // no failures and no unready nodes
}

// ordinary draws the size of most clusters: up to 40 nodes and 4 levels, one in 50 up to
// 200 nodes, and one in 10 as many levels as there may be.
func ordinary(t *rapid.T) size {
	switch {
	case oneIn(t, 50, "large"):
		return size{levels: 4, nodes: 200}
	case oneIn(t, 10, "deep"):
		return size{levels: level.MaxLevels, nodes: 25}
	}
	return size{levels: 4, nodes: 40}
}

// cluster is a workload's levels and nodes, with the filters' answer to each node.
type cluster struct {
	levels []level.Level
	rule   placement.Faults
	nodes  []placement.Node
	room   map[string]int64 // of more pods; a node fits while it has room
	// from is the first of the values that occur: with few of them, branches are shared down to the last of several levels.
	from int
	// most is the highest count of pods of a kind on a node: where it is 0 or 1, branches tie.
	most    int64
	healthy bool
	// mortal: nodes end.
	mortal bool
	// unique is a level at which each node has a value of its own, -1 for none.
	unique int
	// request is what each pod requests of a node's CPU or memory, if anything.
	request placement.Usage
	// spotless: one node in so many has a record. Where most have, branches are faulty as a whole.
	spotless int
}

// values of node properties: few, so that branches are shared, and with one before
// "*" in byte order. A node drawn the index past the end has no such property.
var values = []string{"", "A", "a", "b", "c"}

func drawCluster(t *rapid.T, s size) *cluster {
	c := &cluster{levels: drawLevels(t, s.levels), rule: drawRule(t), room: make(map[string]int64), healthy: s.healthy}
	if c.unique = -1; len(c.levels) > 0 && oneIn(t, 5, "a level of nodes") {
		c.unique = rapid.IntRange(0, len(c.levels)-1).Draw(t, "unique")
	}
	c.from = rapid.IntRange(0, len(values)).Draw(t, "first value")
	c.mortal = oneIn(t, 2, "nodes end")
	c.most = rapid.Int64Range(0, 4).Draw(t, "most pods")
	c.request = drawUsage(t, 1)
	c.request.CPU.Allocatable, c.request.Memory.Allocatable = 0, 0
	c.spotless = rapid.IntRange(1, 5).Draw(t, "nodes for a record")
	for i := range rapid.IntRange(1, s.nodes).Draw(t, "nodes") {
		n := c.drawNode(t, "n"+strconv.Itoa(i))
		c.nodes = append(c.nodes, n)
		c.room[n.Name] = drawRoom(t)
	}
	return c
}

func drawLevels(t *rapid.T, most int) []level.Level {
	var levels []level.Level
	for i := range rapid.IntRange(0, most).Draw(t, "levels") {
		l := level.Level{Strategy: level.Spread, Property: level.Property{Label: "level-" + strconv.Itoa(i)}, NodesWithoutKey: level.OwnDomain}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			l.Strategy = level.Pack
		case 1, 2:
			l.Weights = drawWeights(t)
		case 3:
			l.Share = level.Allocatable
		}
		levels = append(levels, drawNodesWithoutKey(t, l))
	}
	if err := level.Validate(levels); err != nil {
		t.Fatalf("drew bad levels: %v", err)
	}
	return levels
}

// drawNodesWithoutKey has some levels put nodes without their property last, or leave them out. At those such nodes have no share.
func drawNodesWithoutKey(t *rapid.T, l level.Level) level.Level {
	switch rapid.IntRange(0, 5).Draw(t, "nodes without key") {
	case 0:
		l.NodesWithoutKey = level.Exclude
	case 1, 2:
		l.NodesWithoutKey = level.LastResort
	default:
		return l
	}
	l.Weights = slices.DeleteFunc(l.Weights, func(w level.Weight) bool { return w.Value == "" })
	return l
}

func drawWeights(t *rapid.T) []level.Weight {
	var ws []level.Weight
	for _, v := range []string{"", level.Others, "A", "a", "b"} { // in byte order
		if oneIn(t, 2, "weighted") {
			share := rapid.Int64Range(1, 4)
			if oneIn(t, 8, "heavy") {
				share = rapid.Int64Range(1, level.MaxShare)
			}
			ws = append(ws, level.Weight{Value: v, Share: share.Draw(t, "share")})
		}
	}
	return ws
}

func (c *cluster) drawNode(t *rapid.T, name string) placement.Node {
	n := placement.Node{Name: name, Tally: c.drawTally(t), Usage: drawUsage(t, 3)}
	for i := range c.levels {
		v := placement.Value{Missing: true}
		if i == c.unique {
			// In another order than the names.
			n.Values = append(n.Values, placement.Value{Text: strconv.Itoa(len(name)) + name[len(name)-1:] + name})
			continue
		}
		if i := rapid.IntRange(c.from, len(values)).Draw(t, "value"); i < len(values) {
			v = placement.Value{Text: values[i]}
		}
		n.Values = append(n.Values, v)
	}
	if oneIn(t, c.spotless, "has a record") {
		n.Record = drawRecord(t)
	}
	if c.healthy {
		n.Failures, n.Unforgiven = 0, 0
		return n
	}
	n.Unready, n.Soft = oneIn(t, 7, "unready"), oneIn(t, 5, "soft")
	if c.mortal {
		n.Ends = rapid.SampledFrom([]int32{0, 1, 500_000, 500_001}).Draw(t, "ends")
	}
	return n
}

// drawRecord keeps nothing apart that reality does, such as unforgiven failures and a
// success: the tree must not depend on what others promise.
func drawRecord(t *rapid.T) placement.Record {
	return placement.Record{
		Failures: rapid.IntRange(0, 3).Draw(t, "failures"), Unforgiven: rapid.IntRange(0, 3).Draw(t, "unforgiven"), Proven: oneIn(t, 6, "proven"),
		Unproven: rapid.Int64Range(0, 2).Draw(t, "unproven"),
	}
}

// drawRule has thresholds that the records drawn come up to one by one, and such as only those of several nodes do.
func drawRule(t *rapid.T) placement.Faults {
	return placement.Faults{Threshold: rapid.IntRange(0, 5).Draw(t, "threshold"), HalfOpen: !oneIn(t, 3, "not half-open")}
}

func (c *cluster) drawTally(t *rapid.T) placement.Tally {
	revision := rapid.Int64Range(0, c.most).Draw(t, "revision")
	workload := revision + rapid.Int64Range(0, min(2, c.most)).Draw(t, "of other revisions")
	return placement.Tally{Revision: revision, Workload: workload, All: workload + rapid.Int64Range(0, min(2, c.most)).Draw(t, "of others")}
}

// drawUsage has few numbers, so that loads tie, and nodes that say nothing of what they have.
func drawUsage(t *rapid.T, most int64) placement.Usage {
	amount := func() placement.Amount {
		return placement.Amount{Requested: rapid.Int64Range(0, most).Draw(t, "requested"), Allocatable: rapid.SampledFrom([]int64{0, 4, 8, 64}).Draw(t, "allocatable")}
	}
	if oneIn(t, 2, "no load") {
		return placement.Usage{}
	}
	return placement.Usage{CPU: amount(), Memory: amount()}
}

// drawRoom is 0 for one node in four.
func drawRoom(t *rapid.T) int64 { return rapid.Int64Range(0, 3).Draw(t, "room") }

func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }
