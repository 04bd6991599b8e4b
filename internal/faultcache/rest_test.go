// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"runtime"
	"testing"
	"time"
)

// After a long record the next one waits, but not when it has a new mark in it; and
// then not less than after a short one.
func TestANewMarkEndsTheRest(t *testing.T) {
	r := newRig(t, options())
	r.reject("web", "n1", 1)
	r.tick()
	if len(r.urgent) > 0 {
		t.Error("a failure that marks nothing is urgent")
	}
	rested := make(chan bool, 1)
	go func() { rested <- r.rest(t.Context(), time.Minute) }()
	r.step(between)
	r.step(between)
	select {
	case <-rested:
		t.Fatal("it was over without a new mark")
	default:
	}
	token(r.urgent)
	select {
	case ended := <-rested:
		if !ended {
			t.Error("the context has ended")
		}
	case <-time.After(10 * time.Second):
		t.Error("a new mark does not end it")
	}
}

func TestANewMarkIsUrgent(t *testing.T) {
	r := newRig(t, options())
	for range 5 {
		r.see(r.ready(podOfWorkload("web", "sound", "n2")))
		r.reject("web", "n1", 1)
	}
	r.tick()
	if len(r.ledger.Marks()) != 1 {
		t.Fatalf("the marks are %v", r.ledger.Marks())
	}
	if len(r.urgent) != 1 {
		t.Fatal("a new mark is not urgent")
	}
	<-r.urgent
	r.tick()
	if len(r.urgent) > 0 {
		t.Error("an old mark is urgent")
	}
}

// step moves the clock when somebody waits for it.
func (r *rig) step(d time.Duration) {
	for !r.clock.HasWaiters() {
		runtime.Gosched()
	}
	r.clock.Step(d)
}
