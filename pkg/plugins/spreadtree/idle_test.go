// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"runtime"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// steppedClock calls what is due once its own lock is given back: what it calls sets timers.
type steppedClock struct {
	*clocktesting.FakeClock
	due []func()
}

func (c *steppedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.FakeClock.AfterFunc(d, func() { c.due = append(c.due, f) })
}

func (c *steppedClock) advance(d time.Duration) {
	c.Step(d)
	due := c.due
	c.due = nil
	for _, f := range due {
		f()
	}
}

func TestWhatIsIdleIsEvicted(t *testing.T) {
	r := zones(t)
	now := &steppedClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	r.pl.idle.clock = now
	r.runs("a1", "1", 1)
	used, idle := webPod("used", "spread=zone").Obj(), webPod("idle", "pack=zone").Obj()
	r.rank(idle, framework.NewCycleState())
	index := r.pl.trees.index
	for i := range 3 {
		r.rank(used, framework.NewCycleState())
		if want := []bool{true, true, false}[i]; (r.kept(idle) != nil) != want {
			t.Errorf("after %d visits it is %t that the idle tally is kept", i, !want)
		}
		now.advance(maxIdle)
	}
	if r.kept(used) == nil || r.pl.trees.index != index || r.pl.trees.topologies.Len() != 1 {
		t.Error("a tally that was used since the last visit, its topology or its index, is gone")
	}
	now.advance(maxIdle)
	if n := len(r.pl.trees.all()); n != 0 || r.pl.trees.index == index {
		t.Errorf("a scheduler that does nothing keeps %d tallies and its index", n)
	}
	if now.HasWaiters() {
		t.Error("a scheduler that keeps nothing has a timer")
	}
	if scores := r.rank(used, framework.NewCycleState()); scores["b1"] != 100 || scores["a2"] == 100 {
		t.Errorf("made again, the tally gives %v", scores)
	}
	if !now.HasWaiters() {
		t.Error("nobody will look after the tally that was made again")
	}
}

// The index of a time in which nothing was placed is garbage: a scheduler that places a pod an hour must not keep one more each time.
func TestNothingKeepsAnIndexThatIsEvicted(t *testing.T) {
	r := zones(t)
	now := &steppedClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	r.pl.idle.clock = now
	r.runs("a1", "1", 1)
	pod := webPod("p", "spread=zone").Obj()
	r.rank(pod, framework.NewCycleState())
	index := weak.Make(r.pl.trees.index)
	if r.pl.looked.Len() == 0 {
		t.Fatal("no owner was looked at for what has no effect")
	}
	for range 2 {
		now.advance(maxIdle)
	}
	runtime.GC()
	if index.Value() != nil {
		t.Error("an index that was evicted is kept")
	}
	r.rank(pod, framework.NewCycleState())
}

// Bare pods and Jobs of one pod: nothing is kept of them.
func TestWorkloadsOfOnePodHaveNoTally(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for name, cpu := range map[string]string{"a1": "8", "a2": "8", "b1": "4"} {
		r.cache.AddNode(r.logger, labelled(name, "zone="+name[:1]).Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: cpu}).Obj())
	}
	alone := func(name string) string {
		pod := ofWorkload(name, name, "spread=zone").Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}).Obj()
		if r.kept(pod) != nil {
			t.Errorf("%s has a tally of its own", name)
		}
		return r.place(pod)
	}
	// All go to the zone with the lower load: zone a has 16 CPUs, zone b 4.
	for i, want := range []string{"a1", "b1", "a2", "a1", "a2", "a1", "b1"} {
		if got := alone(string(rune('p' + i))); got != want {
			t.Errorf("pod %d went to %s, want %s", i, got, want)
		}
	}
	if n := len(r.pl.trees.all()); n != 0 {
		t.Errorf("there are %d tallies", n)
	}
	if err := r.shown(ofWorkload("z", "z", "spread=zone").Obj()).Validate(); err != nil {
		t.Error(err)
	}
	if got := r.place(ofWorkload("p", "second", "spread=zone").Obj()); got != "b1" {
		t.Errorf("the second pod of p went to %s, want b1: the first is in zone a", got)
	}
	if n := len(r.pl.trees.all()); n != 1 {
		t.Errorf("there are %d tallies after the second pod of a workload, want 1", n)
	}
}
