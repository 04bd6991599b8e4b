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

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

const (
	leaseAnnotation  = "espalier.dev/lease"
	expiryAnnotation = "espalier.dev/lease-expiry"
	endAnnotation    = "espalier.dev/valid-until"
)

// after is a time of RFC 3339.
func after(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

// leasing starts a scheduler of the story's own for which leases are what the overlay leases says.
func (s *story) leasing() {
	s.Helper()
	s.ownScheduler(s.name, s.ownProfile("leases: Disabled", "leases: AnnotationsAndDeadlines"))
}

// leased is a pod of an app with a lease.
func (s *story) leased(app, lease string) corev1.PodTemplateSpec {
	template := s.template(app, "")
	template.Annotations[leaseAnnotation] = lease
	return template
}

// expiry is when the lease of a pod ends.
func (s *story) expiry(pod *corev1.Pod) time.Time {
	s.Helper()
	at, err := time.Parse(time.RFC3339, pod.Annotations[expiryAnnotation])
	s.must(err, "reading when the lease of pod "+pod.Name+" ends")
	return at
}

// Vector TV18 in a cluster: a node takes a pod whose lease ends before it does, and when its end is nearer it takes no other one with the same
// lease, while the first runs on. The second is placed as soon as a node lives long enough.
func TestLease(t *testing.T) {
	s := begin(t, lifetimes.core(), byZone)
	s.leasing()
	node := s.nodes(1, 20, zone("zone-a"))[0]
	const lease = time.Hour
	end := time.Now().Add(lease + timeout)
	s.annotate(node, endAnnotation, end.UTC().Format(time.RFC3339))
	s.pod("first", s.leased("app", lease.String()))
	s.onNode("first", node)
	first := get[corev1.Pod](s, "first")
	if expiry := s.expiry(first); !expiry.Before(end) || expiry.Before(first.CreationTimestamp.Add(lease)) {
		t.Errorf("the lease of a pod made %v ends %v, and its node %v", first.CreationTimestamp, expiry, end)
	}
	s.annotate(node, endAnnotation, after(lease-time.Minute))
	s.refusedSoon("second", s.leased("app", lease.String()))
	s.refusedFor("second", "1 node(s) ended before the pod's lease would")
	later := time.Now()
	s.annotate(node, endAnnotation, after(24*time.Hour))
	s.onNode("second", node)
	t.Logf("the second pod had its node %s after the node was given a later end", time.Since(later).Round(10*time.Millisecond))
	if now := get[corev1.Pod](s, "first"); now.UID != first.UID || now.DeletionTimestamp != nil {
		t.Errorf("the first pod does not run on: %v", now)
	}
}

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
