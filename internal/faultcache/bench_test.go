// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// crashLoops has each of some revisions of a namespace fail on nodes, so often on each.
func (r *rig) crashLoops(namespace string, revisions, nodes, failures int) {
	r.Helper()
	now := r.lock()
	defer r.mu.Unlock()
	for i := range revisions {
		of := failure.Revision{Workload: fmt.Sprintf("%s/StatefulSet.apps/w%d", namespace, i), Revision: "1"}
		r.tracked[of] = &tracked{family: of.Workload, failed: now}
		for n := range nodes {
			for k := range failures {
				r.ledger.Fail(of, fmt.Sprintf("ip-10-0-%d.internal", n), failure.Rule{}, failure.Failure{
					Pod: fmt.Sprintf("f1b9c1c4-3a0c-4a3e-9c51-%06d%06d", i, n), Key: fmt.Sprintf("exit/%d", k), Kind: "Error(1)",
					At: now.Add(-time.Duration(failures-k) * time.Millisecond),
				})
			}
		}
	}
}

var loops = []struct{ revisions, nodes, failures int }{{1, 10_000, 10}, {1000, 10, 10}, {100, 100, 64}}

// BenchmarkTheLockWhileTheRecordIsMade asks for the lock again and again while the record is
// made. It tells how long that takes at the most while one record is made: the median, because
// some of it is other processes.
func BenchmarkTheLockWhileTheRecordIsMade(b *testing.B) {
	for _, l := range loops {
		b.Run(fmt.Sprintf("revisions=%d/nodes=%d/failures=%d", l.revisions, l.nodes, l.failures), func(b *testing.B) {
			r := newRig(b, without(options()))
			r.crashLoops("ns", l.revisions, l.nodes, l.failures)
			var longest []time.Duration
			for b.Loop() {
				done := make(chan struct{})
				go func() {
					defer close(done)
					r.toWrite()
				}()
				longest = append(longest, r.longestWait(done))
			}
			slices.Sort(longest)
			b.ReportMetric(float64(longest[len(longest)/2].Microseconds())/1000, "wait-ms")
		})
	}
}

// longestWait takes the lock until something is done.
func (r *rig) longestWait(done <-chan struct{}) (longest time.Duration) {
	for {
		select {
		case <-done:
			return longest
		default:
		}
		begin := time.Now()
		r.mu.Lock()
		longest = max(longest, time.Since(begin))
		r.mu.Unlock()
	}
}

// BenchmarkTheBound makes room among as many failures as there may be. All of it is done under
// the lock.
func BenchmarkTheBound(b *testing.B) {
	for _, l := range []struct{ revisions, nodes, failures int }{{1, maxFailures/5 + 1, 5}, {maxPerNamespace, maxFailures/5/maxPerNamespace + 1, 5}, {100, maxFailures/64/100 + 1, 64}} {
		b.Run(fmt.Sprintf("revisions=%d/nodes=%d/failures=%d", l.revisions, l.nodes, l.failures), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				r := newRig(b, without(options()))
				r.crashLoops("ns", l.revisions, l.nodes, l.failures)
				b.StartTimer()
				r.bound()
				if got := r.ledger.Failures(); got > maxFailures {
					b.Fatalf("%d failures are left", got)
				}
			}
		})
	}
}
