// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

const (
	window   = 50 * time.Millisecond
	maxDelay = 120 * time.Millisecond
)

// steppedClock calls what is due after its own lock is released: what it calls asks
// it for the time.
type steppedClock struct {
	*clocktesting.FakeClock
	mu  sync.Mutex // guards due
	due []func()
}

func newClock() *steppedClock {
	return &steppedClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
}

func (c *steppedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.FakeClock.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.due = append(c.due, f)
	})
}

// advance goes on by a time, one millisecond after the other.
func (c *steppedClock) advance(d time.Duration) {
	for range d / time.Millisecond {
		c.Step(time.Millisecond)
		c.mu.Lock()
		due := c.due
		c.due = nil
		c.mu.Unlock()
		for _, f := range due {
			f()
		}
	}
}

// gate is a debouncer with the queue behind it.
type gate struct {
	*debouncer
	clock  *steppedClock
	keys   map[string]batchKey // by pod
	passed []string            // "40: p1 p2", the milliseconds and the pods let pass then
	gone   map[string]bool     // pods that are deleted
}

func newGate() *gate {
	g := &gate{clock: newClock(), keys: make(map[string]batchKey), gone: make(map[string]bool)}
	g.debouncer = newDebouncer(window, maxDelay, g.clock, func(pods map[string]*corev1.Pod) {
		var names []string
		for _, p := range pods {
			if !g.gone[p.Name] && g.ask(p.Name) {
				names = append(names, p.Name)
			}
		}
		slices.Sort(names)
		g.passed = append(g.passed, fmt.Sprint(g.clock.Now().Sub(time.Unix(0, 0)).Milliseconds(), ": ", names))
	})
	return g
}

func (g *gate) ask(pod string) bool {
	return g.admit(g.keys[pod], webPod(pod, "").Obj())
}

// arrive brings a pod of a workload, after a pause.
func (g *gate) arrive(t *testing.T, after time.Duration, workload, pod string) {
	t.Helper()
	g.clock.advance(after)
	g.keys[pod] = batchKey{workload: clusterview.Workload{Name: workload}}
	if g.ask(pod) {
		t.Errorf("pod %s passed at once", pod)
	}
}

func TestDebouncer(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name string
		play func(t *testing.T, g *gate)
		want []string
	}{
		{"one pod", func(t *testing.T, g *gate) { g.arrive(t, 0, "a", "p1") }, []string{"50: [p1]"}},
		{"arrivals begin the window again", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.arrive(t, 40*ms, "a", "p2")
		}, []string{"90: [p1 p2]"}},
		{"to be asked again is no arrival", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.arrive(t, 40*ms, "a", "p1")
		}, []string{"50: [p1]"}},
		{"other batches' arrivals do not", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.arrive(t, 30*ms, "b", "q1")
		}, []string{"50: [p1]", "80: [q1]"}},
		{"nobody waits longer than the longest delay", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.arrive(t, 40*ms, "a", "p2")
			g.arrive(t, 40*ms, "a", "p3")
			g.arrive(t, 30*ms, "a", "p4")
			g.arrive(t, 20*ms, "a", "p5")
		}, []string{"120: [p1 p2 p3 p4]", "180: [p5]"}},
		{"a second batch of the workload", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.arrive(t, 60*ms, "a", "p2")
		}, []string{"50: [p1]", "110: [p2]"}},
		{"a pod deleted while it waits", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.arrive(t, 10*ms, "a", "p2")
			g.gone["p1"] = true
		}, []string{"60: [p2]"}},
		{"all of a batch deleted", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.gone["p1"] = true
		}, []string{"50: []"}},
		{"a pod that comes back has to wait again", func(t *testing.T, g *gate) {
			g.arrive(t, 0, "a", "p1")
			g.arrive(t, 70*ms, "a", "p1")
		}, []string{"50: [p1]", "120: [p1]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGate()
			tc.play(t, g)
			g.clock.advance(time.Second)
			if !slices.Equal(g.passed, tc.want) {
				t.Errorf("got %q, want %q", g.passed, tc.want)
			}
			if len(g.waiting) != 0 || len(g.released) != 0 || g.clock.HasWaiters() {
				t.Errorf("left behind: %d batches, %d released pods, timers: %t", len(g.waiting), len(g.released), g.clock.HasWaiters())
			}
		})
	}
}

// A pod whose labels change while it waits is asked for again with another batch.
// The first batch to end releases it, and the other does no harm.
func TestDebouncerPodChangesItsBatch(t *testing.T) {
	g := newGate()
	g.arrive(t, 0, "a", "p1")
	g.arrive(t, 20*time.Millisecond, "b", "p1")
	g.clock.advance(time.Second)
	if len(g.passed) == 0 || g.passed[0] != "50: [p1]" {
		t.Errorf("got %q", g.passed)
	}
	if len(g.waiting) != 0 || len(g.released) != 0 {
		t.Errorf("left behind: %d batches, %d released pods", len(g.waiting), len(g.released))
	}
}

func TestDebouncerFromSeveralSides(t *testing.T) {
	g := newGate()
	const pods = 100
	for i := range pods {
		g.keys[fmt.Sprint("p", i)] = batchKey{workload: clusterview.Workload{Name: fmt.Sprint(i % 3)}}
	}
	var sides sync.WaitGroup
	for side := range 4 {
		sides.Go(func() {
			for i := side; i < pods; i += 4 {
				if g.ask(fmt.Sprint("p", i)) {
					t.Errorf("pod p%d passed at once", i)
				}
			}
		})
	}
	sides.Wait()
	g.clock.advance(time.Second)
	if len(g.passed) != 3 || len(g.waiting) != 0 || len(g.released) != 0 {
		t.Errorf("%d batches passed, %d batches and %d released pods are left", len(g.passed), len(g.waiting), len(g.released))
	}
}
