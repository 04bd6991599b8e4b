// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/moby/swarmkit/v2/api"
	"github.com/moby/swarmkit/v2/manager/scheduler"
	"github.com/moby/swarmkit/v2/manager/state/store"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// What SwarmKit does between reading its store and writing the decisions back has no
// exported name. A pass as a whole is nine tenths store, and compares nothing.

//go:linkname setupTasksList github.com/moby/swarmkit/v2/manager/scheduler.(*Scheduler).setupTasksList
func setupTasksList(s *scheduler.Scheduler, tx store.ReadTx) error

//go:linkname scheduleTaskGroup github.com/moby/swarmkit/v2/manager/scheduler.(*Scheduler).scheduleTaskGroup
func scheduleTaskGroup(s *scheduler.Scheduler, ctx context.Context, group map[string]*api.Task, decisions map[string]decision) //nolint:revive // The receiver of a method is its first parameter.

// decision is SwarmKit's schedulingDecision, field by field.
type decision struct{ _, after *api.Task }

var hierarchies = [][]string{nil, {"az", "rack"}, {"region", "az", "rack", "row"}}

// BenchmarkDecide decides a batch on an empty cluster and writes nothing: SwarmKit's batched path from its set of nodes, ours from a list
// of nodes, each building its tree first. Both ask for a node's free CPU before it is taken.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []struct{ nodes, tasks int }{{1000, 1000}, {1000, 10_000}, {5000, 5000}, {10_000, 10_000}, {100_000, 1000}, {100_000, 100_000}} {
		for _, labels := range hierarchies {
			if size.nodes > 10_000 && os.Getenv("SCALE") == "small" {
				continue
			}
			c := hall(size.nodes, size.tasks, labels)
			name := fmt.Sprintf("nodes=%d/tasks=%d/levels=%d", size.nodes, size.tasks, len(labels))
			b.Run(name+"/by=swarmkit", func(b *testing.B) { swarmDecides(b, c) })
			b.Run(name+"/by=espalier", func(b *testing.B) { oursDecides(b, c) })
		}
	}
}

// BenchmarkOne decides one task after another of a service that grows, as when they
// come one by one. SwarmKit keeps its set of nodes, and builds its tree for each.
func BenchmarkOne(b *testing.B) {
	for _, nodes := range []int{1000, 10_000, 100_000} {
		for _, labels := range hierarchies {
			if nodes > 10_000 && os.Getenv("SCALE") == "small" {
				continue
			}
			c := hall(nodes, 1, labels)
			name := fmt.Sprintf("nodes=%d/levels=%d", nodes, len(labels))
			b.Run(name+"/by=swarmkit", func(b *testing.B) {
				s, sched := assemble(b, c)
				for i := 0; b.Loop(); i++ {
					swarmDecide(b, s, sched, i, 1)
				}
				perPlacement(b, 1)
			})
			b.Run(name+"/by=espalier", func(b *testing.B) {
				t, fits := plant(b, c, treeNodes(c))
				t.Place(1000, fits) // the first look at every node of their zones; the tree is not live before
				for b.Loop() {
					if len(t.Place(1, fits)) != 1 {
						b.Fatal("the task has no node")
					}
				}
				perPlacement(b, 1)
			})
		}
	}
}

// perPlacement has the unit that is compared, as the only one.
func perPlacement(b *testing.B, tasks int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tasks), "ns/placement")
	b.ReportMetric(0, "ns/op")
}

func swarmDecides(b *testing.B, c *Cluster) {
	for range b.N {
		b.StopTimer()
		s, sched := assemble(b, c)
		b.StartTimer()
		swarmDecide(b, s, sched, 0, c.Service.Tasks)
	}
	perPlacement(b, c.Service.Tasks)
}

// assemble has SwarmKit read a cluster.
func assemble(b *testing.B, c *Cluster) (*swarm, *scheduler.Scheduler) {
	s := &swarm{Cluster: c, store: store.NewMemoryStore(nil)}
	b.Cleanup(func() { _ = s.store.Close() })
	must(b, s.store.Update(s.populate))
	sched := scheduler.New(s.store)
	var err error
	s.store.View(func(tx store.ReadTx) { err = setupTasksList(sched, tx) })
	must(b, err)
	return s, sched
}

// swarmDecide decides a batch of new tasks, the numbers of which begin with first.
func swarmDecide(b *testing.B, s *swarm, sched *scheduler.Scheduler, first, tasks int) {
	b.StopTimer()
	group := make(map[string]*api.Task, tasks)
	for i := range tasks {
		t := s.task(pending(first+i), newest)
		group[t.ID] = t
	}
	decisions := make(map[string]decision, tasks)
	if tasks > 1 {
		runtime.GC() // of what was assembled, which is no part of deciding
	}
	b.StartTimer()
	scheduleTaskGroup(sched, b.Context(), group, decisions)
	for _, d := range decisions {
		if d.after.NodeID == "" {
			b.Fatal("a task has no node")
		}
	}
	if len(decisions) != tasks {
		b.Fatalf("%d of %d tasks are decided", len(decisions), tasks)
	}
}

func oursDecides(b *testing.B, c *Cluster) {
	nodes := treeNodes(c)
	for range b.N {
		b.StopTimer()
		runtime.GC() // of the tree before it, as it is with SwarmKit
		b.StartTimer()
		t, fits := plant(b, c, nodes)
		if placed := t.Place(c.Service.Tasks, fits); len(placed) != c.Service.Tasks {
			b.Fatalf("%d of %d tasks have a node", len(placed), c.Service.Tasks)
		}
	}
	perPlacement(b, c.Service.Tasks)
}

func treeNodes(c *Cluster) []placement.Node {
	nodes := make([]placement.Node, len(c.Nodes))
	for i := range c.Nodes {
		nodes[i] = placementNode(&c.Nodes[i], c.Service.Labels, All)
	}
	return nodes
}

func plant(b *testing.B, c *Cluster, nodes []placement.Node) (*simulation.Tree, placement.Fits) {
	levels, err := Levels(c.Service.Labels)
	must(b, err)
	t := simulation.New(levels, nodes...)
	free := c.Nodes[0].CPU // all have as much
	return t, func(name string) bool {
		tally, ok := t.Tally(name)
		return ok && (tally.Revision+1)*c.Service.CPU <= free
	}
}

// hall has two regions, ten zones of ten racks, two rows in each rack, and room on every node for more tasks than a benchmark brings.
func hall(nodes, tasks int, labels []string) *Cluster {
	c := &Cluster{Service: Service{Tasks: tasks, Labels: labels, CPU: 1}}
	for i := range nodes {
		c.Nodes = append(c.Nodes, Node{Name: fmt.Sprintf("node-%05d", i), State: Active, CPU: 1 << 40, Labels: map[string]string{
			"az": fmt.Sprint("az", i%10), "rack": fmt.Sprint("rack", i/10%10), "region": fmt.Sprint("region", i%2), "row": fmt.Sprint("row", i/100%2),
		}})
	}
	return c
}
