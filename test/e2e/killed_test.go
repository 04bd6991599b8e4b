// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// watch remembers where the story's pods are bound, until it ends.
func (s *story) watch() *rig.Bindings {
	s.Helper()
	b, stop, err := rig.WatchBindings(s.ctx, s.client, s.ns)
	s.must(err, "beginning to remember")
	s.Cleanup(stop)
	return b
}

// ownProfile writes the shipped profile under another scheduler name, so that
// killing its process disturbs no other story.
func (s *story) ownProfile() (flag string) {
	s.Helper()
	s.scheduler = "e2e-" + s.name
	old := []byte("schedulerName: " + rig.SchedulerName)
	if bytes.Count(manifests.SchedulerConfig, old) != 1 {
		s.Fatalf("the shipped profile has not exactly one line %q", old)
	}
	path := filepath.Join(s.TempDir(), "profile.yaml")
	s.must(os.WriteFile(path, bytes.Replace(manifests.SchedulerConfig, old, []byte("schedulerName: "+s.scheduler), 1), 0o600), "writing the profile")
	return "--config=" + path
}

// The scheduler dies without a word while it places 500 pods, with some decided
// but not bound, and another takes over: it must neither forget one, nor bind
// one twice, nor count one twice.
func TestSchedulerKilledInTheMiddleOf500Pods(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(10, 100, zone("zone-a"))
	s.nodes(5, 100, zone("zone-b"))
	s.nodes(4, 100, zone("zone-c"))
	seen := s.watch()
	profile := s.ownProfile()
	first := s.ownScheduler(s.scheduler, profile)
	s.deploy("app", 500, "spread="+zoneLabel)
	s.untilBound(seen, 120)
	first.Kill()
	_, bound := seen.Bound()
	if bound >= 500 {
		s.Fatalf("all pods were bound before the scheduler was killed, though its rate is limited: this told nothing")
	}
	s.Logf("killed with %d of 500 pods bound", bound)

	s.ownScheduler(s.scheduler, profile)
	o := s.settled("app", 500)
	s.counts(o, 0, 167, 167, 166)
	s.even(o)
	if pods, bound := seen.Bound(); pods != 500 || bound != 500 {
		s.Errorf("there were %d pods, %d of them bound, want 500 of each: a pod was lost and replaced", pods, bound)
	}
	for _, pod := range seen.Moved() {
		s.Error(pod)
	}
	s.onceEach()
}

// untilBound returns as soon as so many pods have nodes.
func (s *story) untilBound(seen *rig.Bindings, n int) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, bound := seen.Bound()
		if bound >= n {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d of %d pods were bound after %s", bound, n, patience)
		}
	}
}

// onceEach fails the story if any pod was announced as bound more than once.
func (s *story) onceEach() {
	s.Helper()
	twice, err := rig.AnnouncedTwice(s.ctx, s.client, s.ns)
	s.must(err, "counting announcements")
	for _, pod := range twice {
		s.Error(pod)
	}
}
