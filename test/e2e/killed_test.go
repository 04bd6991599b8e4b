// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
// killing its process disturbs no other story: that of the story, if it has one of its own. Changes are lines of it, and what is to be in their place.
func (s *story) ownProfile(changes ...string) (flag string) {
	s.Helper()
	if s.scheduler == rig.SchedulerName {
		s.scheduler = "e2e-" + s.name
	}
	profile := string(manifests.SchedulerConfig)
	for change := range slices.Chunk(append(changes, "schedulerName: "+rig.SchedulerName, "schedulerName: "+s.scheduler), 2) {
		if strings.Count(profile, change[0]) != 1 {
			s.Fatalf("the shipped profile has not exactly one line %q", change[0])
		}
		profile = strings.Replace(profile, change[0], change[1], 1)
	}
	path := filepath.Join(s.TempDir(), "profile.yaml")
	s.must(os.WriteFile(path, []byte(profile), 0o600), "writing the profile")
	return "--config=" + path
}

// The scheduler dies without a word while it places 500 pods, with some decided
// but not bound, and another takes over: it must neither forget one, nor bind
// one twice, nor count one twice.
func TestSchedulerKilledInTheMiddleOf500Pods(t *testing.T) {
	s := begin(t, spread, byZone)
	s.nodes(10, 100, zone("zone-a"))
	s.nodes(5, 100, zone("zone-b"))
	s.nodes(4, 100, zone("zone-c"))
	seen := s.watch()
	profile := s.ownProfile()
	first := s.slowScheduler("first-"+s.name, profile)
	s.deploy("app", 500, "spread="+zoneLabel)
	s.untilBound(seen, 120)
	first.Kill()
	_, bound := seen.Bound()
	if bound >= 500 {
		s.Fatalf("all pods were bound before the scheduler was killed, though its rate is limited: this told nothing")
	}
	s.Logf("killed with %d of 500 pods bound", bound)

	second := s.slowScheduler("second-"+s.name, profile)
	o := s.settled("app", 500)
	s.counts(o, 0, 167, 167, 166)
	s.even(o)
	if pods, bound := seen.Bound(); pods != 500 || bound != 500 {
		s.Errorf("there were %d pods, %d of them bound, want 500 of each: a pod was lost and replaced", pods, bound)
	}
	s.bindsNoneTwice(second, &o.Pods[0])
	s.onceEach(500)
}

// slowScheduler is ownScheduler with a limit of bindings, so that there is a middle on any machine:
// within the shipped one a fast one binds all pods of a story before anybody can end it.
func (s *story) slowScheduler(name string, flags ...string) *rig.Process {
	s.Helper()
	return s.ownScheduler(name, append([]string{"--kube-api-qps=100", "--kube-api-burst=20"}, flags...)...)
}

// untilBound returns as soon as so many pods have nodes.
func (s *story) untilBound(seen *rig.Bindings, n int) {
	s.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		_, bound := seen.Bound()
		if bound >= n {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d of %d pods were bound after %s", bound, n, timeout)
		}
	}
}

// bindsNoneTwice fails the story if a scheduler was told that a pod which it was to bind is bound. A
// pod's node never changes, so that nothing but such an answer shows it.
func (s *story) bindsNoneTwice(scheduler *rig.Process, bound *corev1.Pod) {
	s.Helper()
	const refusal = "is already assigned to node"
	err := s.client.CoreV1().Pods(s.ns).Bind(s.ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: bound.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: bound.Spec.NodeName},
	}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), refusal) {
		s.Errorf("binding pod %s, which is bound, the API server says %v, and not that it %s", bound.Name, err, refusal)
	}
	text, err := os.ReadFile(scheduler.Log)
	s.must(err, "reading the log of "+scheduler.Name)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, refusal) {
			s.Errorf("%s was to bind a pod that was bound: %s", scheduler.Name, line)
		}
	}
}

// onceEach fails the story if any of n pods was announced as bound more than once.
func (s *story) onceEach(n int) {
	s.Helper()
	twice, err := rig.AnnouncedTwice(s.ctx, s.client, s.ns, n, timeout)
	s.must(err, "counting announcements")
	for _, pod := range twice {
		s.Error(pod)
	}
}
