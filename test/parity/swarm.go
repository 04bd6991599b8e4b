// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moby/swarmkit/v2/api"
	"github.com/moby/swarmkit/v2/log"
	"github.com/moby/swarmkit/v2/manager/scheduler"
	"github.com/moby/swarmkit/v2/manager/state/store"
)

// timeout is far more than a pass takes. SwarmKit waits 50 ms for a batch to be
// complete, and at most a second.
const timeout = 30 * time.Second

// oneAtATime is held while a scheduler runs: SwarmKit's filters remember the task that
// they were loaded with, and all schedulers of a process share them.
var oneAtATime sync.Mutex

// Silence turns SwarmKit's log off, which warns of every faulty node.
func Silence() { log.L.Logger.SetOutput(io.Discard) }

// Swarm lets SwarmKit's scheduler place the new tasks.
//
// Without failures the cluster is in the store before the scheduler starts: its
// first pass is the answer, and nothing has to be waited for. Failures it only counts
// when it sees them happen, so with some it is started first, and then given the
// failures together with the new tasks.
func Swarm(ctx context.Context, c *Cluster) (Placed, error) {
	oneAtATime.Lock()
	defer oneAtATime.Unlock()
	s := &swarm{Cluster: c, store: store.NewMemoryStore(nil)}
	defer func() { _ = s.store.Close() }()
	if err := s.store.Update(s.populate); err != nil {
		return nil, fmt.Errorf("filling SwarmKit's store: %w", err)
	}
	sched := scheduler.New(s.store)
	ended := make(chan error, 1)
	if s.failures() == 0 {
		if err := s.store.Update(s.createTasks); err != nil {
			return nil, fmt.Errorf("creating the new tasks: %w", err)
		}
		go func() { ended <- sched.Run(ctx) }()
	} else {
		go func() { ended <- sched.Run(ctx) }()
		if err := s.failAndCreate(ctx); err != nil {
			sched.Stop()
			return nil, err
		}
	}
	// Stop returns when the loop does, which is after the first pass.
	sched.Stop()
	if err := <-ended; err != nil {
		return nil, fmt.Errorf("running SwarmKit's scheduler: %w", err)
	}
	return s.read()
}

// swarm is a cluster as SwarmKit's store has it.
type swarm struct {
	*Cluster
	store *store.MemoryStore
}

const (
	service = "service"
	// probe is a task that no node can take. That it has been refused says that the
	// scheduler has read the store and watches it.
	probe = "probe"
)

func (s *swarm) failures() int {
	total := 0
	for i := range s.Nodes {
		total += s.Nodes[i].Failures
	}
	return total
}

// failAndCreate waits until the scheduler watches, lets tasks fail and creates the
// new ones in one transaction, and waits until all of these are decided.
func (s *swarm) failAndCreate(ctx context.Context) error {
	if err := s.await(ctx, probe); err != nil {
		return err
	}
	err := s.store.Update(func(tx store.Tx) error {
		for i := range s.Nodes {
			for f := range s.Nodes[i].Failures {
				t := store.GetTask(tx, failing(&s.Nodes[i], f)).Copy()
				t.Status.State = api.TaskStateFailed
				if err := store.UpdateTask(tx, t); err != nil {
					return err
				}
			}
		}
		return s.createTasks(tx)
	})
	if err != nil {
		return fmt.Errorf("letting tasks fail: %w", err)
	}
	var all []string
	for i := range s.Service.Tasks {
		all = append(all, pending(i))
	}
	return s.await(ctx, all...)
}

// await waits until tasks are placed or refused.
func (s *swarm) await(ctx context.Context, ids ...string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var open int
	decided := func(tx store.ReadTx) error {
		open = 0
		for _, id := range ids {
			if t := store.GetTask(tx, id); t.NodeID == "" && t.Status.Err == "" {
				open++
			}
		}
		return nil
	}
	changes, stop, err := store.ViewAndWatch(s.store, decided, api.EventUpdateTask{})
	if err != nil {
		return fmt.Errorf("watching SwarmKit's store: %w", err)
	}
	defer stop()
	for open > 0 {
		select {
		case <-changes:
			s.store.View(func(tx store.ReadTx) { _ = decided(tx) })
		case <-ctx.Done():
			return fmt.Errorf("%d of %d tasks are undecided after %v: %w", open, len(ids), timeout, ctx.Err())
		}
	}
	return nil
}

// read returns where the new tasks went.
func (s *swarm) read() (Placed, error) {
	placed := Placed{}
	var err error
	s.store.View(func(tx store.ReadTx) {
		for i := range s.Service.Tasks {
			t := store.GetTask(tx, pending(i))
			switch {
			case t == nil:
				err = errors.Join(err, fmt.Errorf("task %s is gone", pending(i)))
			case t.NodeID != "":
				placed[t.NodeID]++
			case t.Status.Err == "":
				err = errors.Join(err, fmt.Errorf("task %s is neither placed nor refused", pending(i)))
			}
		}
	})
	return placed, err
}

func pending(i int) string { return fmt.Sprintf("new-%d", i) }

func failing(n *Node, i int) string { return fmt.Sprintf("%s-failing-%d", n.Name, i) }
