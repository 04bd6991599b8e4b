// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"container/heap"
	"errors"
	"math/rand/v2"
	"time"
)

// errBind is what a binding comes to that fails for no reason of the node's.
var errBind = errors.New("the binding failed")

// Run plays a config.
func Run(c Config) (Result, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return Result{}, err
	}
	p := newPlay(c)
	p.run()
	return p.result, nil
}

// play is one run.
type play struct {
	config   Config
	random   *rand.Rand
	agent    *Agent
	replicas []*replica
	running  []int           // the nodes of all pods that run, one for each
	busy     []time.Duration // by node, until when a commit there is checked
	events   events
	serial   int
	now      time.Duration
	result   Result
}

// replica is a scheduler with the pods that wait for it.
type replica struct {
	scheduler
	waiting  []*pod
	deciding bool
}

// pod is one that waits, or that is decided about.
type pod struct{ attempts int }

func newPlay(c Config) *play {
	capacity, used := make([]int64, c.Nodes), make([]int64, c.Nodes)
	for node := range capacity {
		capacity[node] = int64(c.Slots)
	}
	p := &play{config: c, random: rand.New(rand.NewPCG(c.Seed, uint64(c.Nodes))), agent: NewAgent(capacity), busy: make([]time.Duration, c.Nodes)}
	all := c.Nodes * c.Slots
	for _, slot := range p.random.Perm(all)[:int(c.Fill*float64(all))] {
		node := slot / c.Slots
		used[node]++
		p.running = append(p.running, node)
		p.agent.bound[node]++
	}
	var sampled scheduler
	if c.SampledNodes > 0 {
		sampled = newBySample(c, p.agent, p.random)
	}
	for id := range c.Replicas {
		r := &replica{scheduler: sampled, deciding: true}
		if sampled == nil {
			r.scheduler = newByTree(id, c, used)
		}
		for range c.Pods/c.Replicas + min(1, max(0, c.Pods%c.Replicas-id)) {
			r.waiting = append(r.waiting, &pod{})
		}
		p.replicas = append(p.replicas, r)
	}
	return p
}

// run plays until nothing is to come.
func (p *play) run() {
	for _, r := range p.replicas {
		p.at(0, func() { p.decide(r) })
	}
	for p.events.Len() > 0 {
		e, _ := heap.Pop(&p.events).(event)
		p.now = e.at
		e.happens()
	}
	p.result.Took = p.now
}

// decide has a replica take up its next pod. It decides about one after the other.
func (p *play) decide(r *replica) {
	if r.deciding = len(r.waiting) > 0; !r.deciding {
		return
	}
	next := r.waiting[0]
	r.waiting = r.waiting[1:]
	next.attempts++
	candidates := r.candidates(int64(p.now))
	p.after(p.config.Decide, func() {
		if len(candidates) > 0 {
			p.commit(r, next, candidates)
		} else {
			p.result.Unplaced++
			p.again(r, next)
		}
		p.decide(r)
	})
}

// commit has the first candidate checked, on which the replica counts meanwhile, and then the next one.
func (p *play) commit(r *replica, next *pod, candidates []int) {
	node := candidates[0]
	r.sees(node, 1)
	p.after(p.config.Send, func() {
		p.agent.Reserve(node, 1, int64(p.now))
		p.busy[node] = max(p.now, p.busy[node]) + p.config.Bind
		p.at(p.busy[node], func() { p.check(r, next, candidates) })
	})
}

// check is the end of a commit: the pod is bound, or the replica hears that it is not.
func (p *play) check(r *replica, next *pod, candidates []int) {
	node := candidates[0]
	err := p.agent.Commit(node, 1, func() error {
		if p.random.Float64() < p.config.Failures {
			return errBind
		}
		return nil
	})
	if err == nil {
		p.bound(r, node)
		return
	}
	p.result.Refused++
	p.after(p.config.Send, func() {
		r.sees(node, -1)
		if len(candidates) > 1 {
			p.commit(r, next, candidates[1:])
			return
		}
		p.result.Conflicts++
		p.again(r, next)
	})
}

// bound has all others see that a pod has come, and all that one has ended elsewhere.
func (p *play) bound(by *replica, node int) {
	p.result.Bound++
	p.running = append(p.running, node)
	at, last := p.random.IntN(len(p.running)), len(p.running)-1
	ended := p.running[at]
	p.running[at] = p.running[last]
	p.running = p.running[:last]
	p.agent.Release(ended, 1)
	p.after(p.config.Lag, func() {
		for _, r := range p.replicas {
			if r != by {
				r.sees(node, 1)
			}
			r.sees(ended, -1)
		}
	})
}

// again has a pod wait for its next turn, behind those that wait.
func (p *play) again(r *replica, next *pod) {
	if next.attempts == p.config.Attempts {
		p.result.GivenUp++
		return
	}
	r.waiting = append(r.waiting, next)
	if !r.deciding {
		r.deciding = true
		p.after(p.config.Decide, func() { p.decide(r) })
	}
}
