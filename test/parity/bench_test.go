// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"testing"

	"github.com/moby/swarmkit/v2/manager/scheduler"
	"github.com/moby/swarmkit/v2/manager/state/store"
)

// BenchmarkPass places a batch on an empty cluster, from nothing: SwarmKit reads its memory store, decides and writes each task back, which
// is nine tenths of its time; ours grows the tree and decides. So ns/task tells how either grows, and which is the faster scheduler it does
// not.
func BenchmarkPass(b *testing.B) {
	for _, size := range []struct{ nodes, tasks int }{{100, 100}, {1000, 1000}, {1000, 10_000}, {5000, 5000}} {
		for _, labels := range [][]string{nil, {"az", "rack"}} {
			c := large(size.nodes, size.tasks, labels)
			name := fmt.Sprintf("nodes=%d/tasks=%d/levels=%d", size.nodes, size.tasks, len(labels))
			b.Run("swarmkit/"+name, func(b *testing.B) { passes(b, c, swarmPass) })
			b.Run("ours/"+name, func(b *testing.B) { passes(b, c, ourPass) })
		}
	}
}

func passes(b *testing.B, c *Cluster, pass func(*testing.B, *Cluster)) {
	b.ReportAllocs()
	for range b.N {
		pass(b, c)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.Service.Tasks), "ns/task")
}

func ourPass(b *testing.B, c *Cluster) {
	placed, err := Ours(c, All)
	if err != nil || placed.Total() != c.Service.Tasks {
		b.Fatalf("%d of %d tasks placed, error %v", placed.Total(), c.Service.Tasks, err)
	}
}

func swarmPass(b *testing.B, c *Cluster) {
	b.StopTimer()
	s := &swarm{Cluster: c, store: store.NewMemoryStore(nil)}
	defer func() { _ = s.store.Close() }()
	for _, fill := range []func(store.Tx) error{s.populate, s.createTasks} {
		must(b, s.store.Update(fill))
	}
	sched := scheduler.New(s.store)
	ended := make(chan error, 1)
	b.StartTimer()
	go func() { ended <- sched.Run(b.Context()) }()
	sched.Stop()
	b.StopTimer()
	must(b, <-ended)
	placed, err := s.read()
	if err != nil || placed.Total() != c.Service.Tasks {
		b.Fatalf("%d of %d tasks placed, error %v", placed.Total(), c.Service.Tasks, err)
	}
	b.StartTimer()
}

// large has ten zones of ten racks, and room for all tasks anywhere.
func large(nodes, tasks int, labels []string) *Cluster {
	c := &Cluster{Service: Service{Tasks: tasks, Labels: labels, CPU: 1}}
	for i := range nodes {
		c.Nodes = append(c.Nodes, Node{
			Name: fmt.Sprintf("node-%05d", i), State: Active, CPU: int64(tasks),
			Labels: map[string]string{"az": fmt.Sprint("az", i%10), "rack": fmt.Sprint("rack", i/10%10)},
		})
	}
	return c
}
