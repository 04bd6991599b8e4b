// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"strconv"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// subsystem is the prefix of our metrics: espalier_.
const subsystem = "espalier"

// The levels of a workload are its own words, so that none of them is a label: they
// are numbered, and there are 16 at most.
const levelOfNodes = "node"

// What was done to a tree.
const (
	operationBuild  = "build"
	operationUpdate = "update"
)

var (
	treeDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "tree_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Time it took to have a pod's tree show the cluster as it is, by operation: build for one whose tally was made anew, " +
			"update for one that was told of what had changed.",
		// From what an update of one node takes, to a build for 10,000 on a slow machine.
		Buckets: metrics.ExponentialBuckets(0.00001, 2, 16),
	}, []string{"profile", "operation"})
	misplacedPods = metrics.NewDesc(metrics.BuildFQName("", subsystem, "misplaced_pods"),
		"Number of pods that would have to move for the workloads placed lately to be even, by level: 1 is the first, node is "+
			"inside the last. Of a workload the latest revision, as it was when a pod of it was placed last.",
		[]string{"profile", "level"}, nil, metrics.ALPHA, "")
)

// foreignCosts counts what was bound without a deletion cost because somebody else writes these.
var foreignCosts = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "foreign_deletion_costs_total", StabilityLevel: metrics.ALPHA,
	Help: "Number of pods that were reserved a node without a deletion cost, because somebody else writes those of their owner's pods.",
}, []string{"profile"})

// register makes the metrics known, once for all plugins of a process.
var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(treeDuration, foreignCosts)
	legacyregistry.CustomMustRegister(&misplacedCollector{})
})

// gauges are the metrics of one plugin.
type gauges struct {
	built, updated metrics.ObserverMetric
	foreignCosts   metrics.CounterMetric
}

func newGauges(profile string) gauges {
	register()
	return gauges{
		built:   treeDuration.WithLabelValues(profile, operationBuild),
		updated: treeDuration.WithLabelValues(profile, operationUpdate),

		foreignCosts: foreignCosts.WithLabelValues(profile),
	}
}

// shown notes how long it took until a tree was true.
func (g gauges) shown(t *tally, took time.Duration) {
	if t.rebuilt {
		g.built.Observe(took.Seconds())
		return
	}
	g.updated.Observe(took.Seconds())
}

// live are the plugins whose trees a scrape looks at, by their profiles.
var live = struct {
	sync.Mutex // guards plugins. It is taken before mu of a plugin.
	plugins    map[*SpreadTree]string
}{plugins: make(map[*SpreadTree]string)}

// live has a scrape look at the plugin's trees, until the context ends.
func (pl *SpreadTree) live(ctx context.Context, profile string) {
	live.Lock()
	defer live.Unlock()
	live.plugins[pl] = profile
	context.AfterFunc(ctx, func() {
		live.Lock()
		defer live.Unlock()
		delete(live.plugins, pl)
	})
}

// misplacedCollector counts when it is scraped: a count for every pod that is placed
// would look at all nodes for each, and nobody would read it.
type misplacedCollector struct{ metrics.BaseStableCollector }

// DescribeWithStability describes the metric.
func (*misplacedCollector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- misplacedPods }

// CollectWithStability counts, for each profile and level.
func (*misplacedCollector) CollectWithStability(ch chan<- metrics.Metric) {
	live.Lock()
	defer live.Unlock()
	byProfile := make(map[string]misplaced)
	for pl, profile := range live.plugins {
		byProfile[profile] = byProfile[profile].plus(pl.misplaced())
	}
	for profile, m := range byProfile {
		for i, pods := range m.byLevel {
			ch <- metrics.NewLazyConstMetric(misplacedPods, metrics.GaugeValue, float64(pods), profile, strconv.Itoa(i+1))
		}
		ch <- metrics.NewLazyConstMetric(misplacedPods, metrics.GaugeValue, float64(m.onNodes), profile, levelOfNodes)
	}
}

// misplaced are pods that would have to move, by level and inside the last. There is
// a first level always, so that no series comes and goes in most clusters.
type misplaced struct {
	byLevel []int64
	onNodes int64
}

func (m misplaced) plus(o misplaced) misplaced {
	for len(m.byLevel) < max(1, len(o.byLevel)) {
		m.byLevel = append(m.byLevel, 0)
	}
	for i, pods := range o.byLevel {
		m.byLevel[i] += pods
	}
	m.onNodes += o.onNodes
	return m
}

// misplaced adds up what the tallies say. The lock is given back after each of them: a
// pod that is being placed waits for one tally, and for none that has not changed.
func (pl *SpreadTree) misplaced() misplaced {
	pl.mu.Lock()
	all := pl.trees.all()
	pl.mu.Unlock()
	var sum misplaced
	for _, t := range all {
		pl.mu.Lock()
		sum = sum.plus(t.misplaced(pl.trees))
		pl.mu.Unlock()
	}
	return sum
}

// misplaced counts unless it has since the tally changed.
func (t *tally) misplaced(in *trees) misplaced {
	// One whose topology was evicted is not counted anew: to build it would evict another.
	if _, kept := in.topologies.Peek(t.levels.Key()); kept && !t.counted {
		t.refresh(in, t.faults)
		view := tree.View{Topology: t.Topology(), Tally: t.Tally}
		if f, known := in.filtered.Peek(t.needs); known {
			f.Refresh()
			view.Feasibility = f.Feasibility
		}
		levels := view.Misplaced()
		last := len(levels) - 1
		t.counted, t.count = true, misplaced{byLevel: levels[:last], onNodes: levels[last]}
	}
	return t.count
}
