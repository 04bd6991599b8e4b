// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"testing"
	"time"
)

// Pods are signed under the lock of the scheduling queue. Whatever is done under the lock of
// the cache meanwhile, it is answered whether a revision is known.
func TestKnownWaitsForNobody(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	for workload, want := range map[string]bool{"web": true, "other": false} {
		answer := make(chan bool, 1)
		go func() { answer <- r.Known(podOfWorkload(workload, "asking", "").Obj()) }()
		select {
		case got := <-answer:
			if got != want {
				t.Errorf("%s is known: %t", workload, got)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("nothing is said of %s while the lock is held", workload)
		}
	}
}

// A revision that is forgotten is not known any more, and one that comes back is.
func TestKnownAgain(t *testing.T) {
	r := newRig(t, without(options()))
	asking := pod("asking", "").Obj()
	for range 2 {
		r.reject("web", "n1", 1)
		if !r.Known(asking) {
			t.Error("it has failed and is not known")
		}
		r.part("n1")
		if r.Known(asking) {
			t.Error("it is known by a node that is gone")
		}
		r.again("n1")
		r.clock.Step(time.Second)
	}
}
