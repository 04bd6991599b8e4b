// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

const (
	// renewLabel is on the namespaces of the stories whose leases are renewed, and staggerLabel on the nodes that are given ends.
	renewLabel   = "e2e.espalier.dev/renew"
	staggerLabel = "e2e.espalier.dev/stagger"
	// leasesScheduler places the pods whose leases are renewed: the controller is told its name when it starts.
	leasesScheduler = "e2e-leases"

	endByAnnotation    = "espalier.dev/valid-until-by"
	renewAnnotation    = "espalier.dev/renew-lease"
	cordonedAnnotation = "espalier.dev/cordoned-for-end"
	rebootAnnotation   = "espalier.dev/reboot-due"
)

// lifetimeFlags have the controller write on those nodes and pods, and on the nodes of NodeClaims. The schedulers are those of all stories.
var lifetimeFlags = []string{
	"--scheduler-names=" + rig.SchedulerName + "," + leasesScheduler + "," + tenantsScheduler,
	"--renew-leases", "--renew-namespace-selector=" + renewLabel, "--node-claims", "--stagger-ends=" + staggerLabel,
}

// Vector TV19 in a cluster: a lease is renewed where the node lives long enough. Where it does not, the pod stays and says so, until there is a
// node that does, and then it is replaced there. At no time is it missed.
func TestLeaseRenewal(t *testing.T) {
	s := begin(t, lifetimes.core(), byZone)
	s.scheduler = leasesScheduler
	s.leasing()
	s.label(renewLabel)
	first := s.nodes(1, 20, zone("zone-a"))[0]
	s.annotate(first, endAnnotation, after(3*time.Hour))
	s.deployment("app", 1, s.leased("app", "1h"))
	before := s.settled("app", 1).Pods[0]
	s.keeps("app", 1)
	stop := s.neverBelow("app", 1)
	time.Sleep(time.Until(s.expiry(&before).Add(2*time.Second - time.Hour))) // times are of whole seconds

	s.asksForALease(before.Name)
	var now *corev1.Pod
	becomes(s, before.Name, "the lease to be renewed", func(is *corev1.Pod) error {
		now = is
		return errorIf(is.Annotations[renewAnnotation] != "", "the pod still asks, and its lease ends %s", is.Annotations[expiryAnnotation])
	})
	if is, was := s.expiry(now), s.expiry(&before); now.UID != before.UID || !is.After(was) {
		t.Errorf("the lease of the pod ended %v, and ends %v", was, is)
	}

	s.annotate(first, endAnnotation, after(30*time.Minute))
	s.asksForALease(before.Name)
	s.tells("LeaseNotRenewed", "Pod", before.Name)
	if n := len(s.moves()); n != 0 {
		t.Errorf("there are %d Moves, and no node to go to", n)
	}
	second := s.nodes(1, 20, zone("zone-b"))[0]
	s.moved(1, placementv1alpha1.MoveDone)
	o := s.settled("app", 1)
	stop()
	if is := o.Pods[0]; is.Spec.NodeName != second || is.Annotations[renewAnnotation] != "" || s.expiry(&is).Before(time.Now().Add(50*time.Minute)) {
		t.Errorf("the pod is on %s with %v", is.Spec.NodeName, is.Annotations)
	}
	if is := s.moves()[0].Spec.Reason; is != placementv1alpha1.MoveLease {
		t.Errorf("the reason of the Move is %s", is)
	}
	s.wroteNoReplicas("app")
}

// asksForALease has a pod ask for its lease to be renewed.
func (s *story) asksForALease(pod string) {
	s.Helper()
	s.alter(named[corev1.Pod](s, pod), `{"metadata":{"annotations":{%q:"true"}}}`, renewAnnotation)
}

// allEnd waits until all nodes of the story have ends, and returns these by name.
func (s *story) allEnd() map[string]time.Time {
	s.Helper()
	ends := make(map[string]time.Time)
	s.until("all nodes to have ends", func() error {
		for _, n := range s.ownNodes() {
			var err error
			if ends[n.Name], err = time.Parse(time.RFC3339, n.Annotations[endAnnotation]); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
		}
		return nil
	})
	return ends
}

// endsNow moves the end of a node, which the schedule has given, to this moment.
func (s *story) endsNow(node string) {
	s.Helper()
	end := after(0)
	s.alter(named[corev1.Node](s, node), `{"metadata":{"annotations":{%q:%q,%q:%q}}}`, endAnnotation, end, endByAnnotation, "Schedule "+end)
}

// waitsForReboot is the check of a node that is left to be rebooted.
func waitsForReboot(n *corev1.Node) error {
	for _, c := range n.Status.Conditions {
		if c.Type == "espalier.dev/RebootDue" && c.Status == corev1.ConditionTrue && n.Spec.Unschedulable && n.Annotations[rebootAnnotation] != "" {
			return nil
		}
	}
	return fmt.Errorf("it has %v and %v", n.Annotations, n.Status.Conditions)
}

// reboots boots a node anew, as a kubelet would say.
func (s *story) reboots(node string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"status":{"nodeInfo":{"bootID":"boot-%d"}}}`, s.serial())
	_, err := s.client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	s.must(err, "rebooting node "+node)
}

// Vector TV21 in a cluster: of 40 nodes of one age at most two end on a day. What a wave of three weeks is like is told with another clock by
// TestVector_TV21_Wave; here the ends of three nodes are moved to this moment. Of two in one zone the second stays in service until the first is
// back, the pods are moved and none is missed, and the ends of all others stay.
func TestExpiryWave(t *testing.T) {
	s := begin(t, lifetimes.core(), byZone)
	var nodes []string
	for i := range 40 {
		// Zones of its own: the load of another story's nodes would count when the last pod is to go to the zone with a node more.
		labels := zone(fmt.Sprintf("zone-%s-%d", s.name, i%3))
		labels[staggerLabel] = ""
		nodes = append(nodes, s.node(5, labels))
	}
	s.live(nodes...)
	ends := s.allEnd()
	perDay := make(map[string]int)
	for _, end := range ends {
		perDay[end.Format(time.DateOnly)]++
	}
	for day, n := range perDay {
		if n > 2 {
			t.Errorf("%d nodes end on %s", n, day)
		}
	}
	s.Logf("40 nodes end on %d days: %v", len(perDay), perDay)

	s.eachHas(s.deployed("app", 40, ""), 1, nodes...)
	stop := s.neverBelow("app", 40)
	first, second, third := nodes[0], nodes[3], nodes[1] // the third is in another zone
	s.endsNow(first)
	becomes(s, first, "node "+first+" to be left to be rebooted", waitsForReboot)
	s.endsNow(second)
	s.endsNow(third)
	becomes(s, third, "node "+third+" to be left to be rebooted", waitsForReboot)
	becomes(s, second, "node "+second+" to be in service", func(n *corev1.Node) error {
		if n.Spec.Unschedulable || n.Annotations[cordonedAnnotation] != "" {
			return rig.Never(errors.New("two nodes of its zone are out of service"))
		}
		return nil
	})
	for _, node := range []string{first, third} {
		s.reboots(node)
		becomes(s, node, "node "+node+" to be in service again", func(n *corev1.Node) error {
			return errorIf(n.Spec.Unschedulable || n.Annotations[cordonedAnnotation] != "" || n.Annotations[rebootAnnotation] != "", "it has %v", n.Annotations)
		})
	}
	becomes(s, second, "node "+second+" to be left to be rebooted", waitsForReboot)
	stop()
	for node, end := range s.allEnd() {
		switch {
		case node == second:
		case node == first || node == third:
			if !end.After(time.Now()) {
				t.Errorf("node %s was rebooted, and has the end %v", node, end)
			}
		case !end.Equal(ends[node]):
			t.Errorf("node %s ends %v, and was to end %v", node, end, ends[node])
		}
	}
	for _, node := range []string{first, second, third} {
		s.tells("NodeEnded", "Node", node)
	}
	s.eachHas(s.settled("app", 40), 0, second)
	s.moved(3, placementv1alpha1.MoveDone)
	s.wroteNoReplicas("app")
}

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
