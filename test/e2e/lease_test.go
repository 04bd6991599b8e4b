// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	first, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, "first", metav1.GetOptions{})
	s.must(err, "reading pod first")
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
	if now, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, "first", metav1.GetOptions{}); err != nil || now.UID != first.UID || now.DeletionTimestamp != nil {
		t.Errorf("the first pod does not run on: %v", err)
	}
}

// A pod that waits for a node that lives long enough takes the first that comes.
func TestLeaseWaitsForANode(t *testing.T) {
	s := begin(t, lifetimes, byZone)
	s.leasing()
	short := s.nodes(2, 20, zone("zone-a"))
	s.annotate(short[0], endAnnotation, after(time.Hour))
	s.annotate(short[1], endAnnotation, "tomorrow")
	s.tells("NodeEndUnreadable", "Node", short[1]) // so that the scheduler knows both ends when the pod comes
	s.pod("waits", s.leased("app", "72h"))
	s.refusedFor("waits", "1 node(s) ended before the pod's lease would", "1 node(s) had a malformed annotation espalier.dev/valid-until")
	s.pod("odd", s.leased("app", "3d"))
	s.refusedFor("odd", `annotation espalier.dev/lease: no duration "3d": use hours, minutes or seconds`)
	s.deploy("others", 4, "") // which have no lease, and are none of this
	s.settled("others", 4)
	another := s.node(20, zone("zone-b"))
	s.live(another)
	ready := time.Now()
	s.onNode("waits", another)
	t.Logf("the pod had its node %s after it was ready", time.Since(ready).Round(10*time.Millisecond))
}
