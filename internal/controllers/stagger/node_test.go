// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// tolerating has a pod tolerate all taints and the cordon.
func tolerating(p *corev1.Pod) *corev1.Pod {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return p
}

// What becomes of one node, step by step.
func TestANodeReachesItsEnd(t *testing.T) {
	daemon, done := on("daemon", "n1"), on("done", "n1")
	daemon.OwnerReferences[0].Kind = "DaemonSet"
	done.Status.Phase = corev1.PodSucceeded
	others := on("others", "n1")
	others.Spec.SchedulerName = "default-scheduler"
	stays := tolerating(on("stays", "n1")) // and would come back
	stays.OwnerReferences[0].Kind = "StatefulSet"
	p := newPool(t, blue("a-day-later", "a"), blue("n1", "a"), on("web", "n1"), daemon, done, others, stays).lookAt(newYear)
	if n := p.node("n1"); n.Annotations[clusterview.ValidUntilAnnotation] != "2018-01-20T23:59:59Z" || n.Annotations[clusterview.UpSinceAnnotation] != "2018-01-01T00:00:00Z first" {
		t.Fatalf("it has the annotations %v", n.Annotations)
	}
	end := newYear.Add(20*day - time.Second)
	p.lookAt(end.Add(-time.Second))
	if p.node("n1").Spec.Unschedulable {
		t.Fatal("it is cordoned before its end")
	}
	p.lookAt(end)
	if n := p.node("n1"); !n.Spec.Unschedulable || n.Annotations[clusterview.CordonedForEndAnnotation] != "2018-01-20T23:59:59Z" || rebootDue(n) != "" {
		t.Fatalf("it is cordoned: %t, %v, %s", n.Spec.Unschedulable, n.Annotations, rebootDue(n))
	}
	p.lookAt(end.Add(time.Minute))
	if n := p.node("n1"); n.Annotations[clusterview.RebootDueAnnotation] != "" || rebootDue(n) != "" {
		t.Fatalf("it is left to be rebooted with a pod on it: %v, %s", n.Annotations, rebootDue(n))
	}
	p.Delete(on("web", "n1"))
	p.lookAt(end.Add(2 * time.Minute))
	if n := p.node("n1"); n.Annotations[clusterview.RebootDueAnnotation] != "2018-01-21T00:01:59Z" || rebootDue(n) != "True Drained" {
		t.Fatalf("it is not left to be rebooted: %v, %s", n.Annotations, rebootDue(n))
	}
	p.lookAt(end.Add(day)) // nobody reboots it, and the other one of its zone waits, which has ended as well
	if n := p.node("a-day-later"); n.Spec.Unschedulable {
		t.Fatal("two of a zone are out of service")
	}
	p.reboot("n1", "second")
	p.lookAt(end.Add(day + time.Minute))
	n := p.node("n1")
	if n.Spec.Unschedulable || n.Annotations[clusterview.RebootDueAnnotation]+n.Annotations[clusterview.CordonedForEndAnnotation] != "" || rebootDue(n) != "False Rebooted" ||
		n.Annotations[clusterview.UpSinceAnnotation] != "2018-01-22T00:00:59Z second" || n.Annotations[clusterview.ValidUntilAnnotation] != "2018-02-11T23:59:59Z" {
		t.Fatalf("it is not back: %t, %v, %s", n.Spec.Unschedulable, n.Annotations, rebootDue(n))
	}
	if n := p.node("a-day-later"); !n.Spec.Unschedulable {
		t.Error("the other one of the zone has no turn")
	}
	var reasons []string
	for _, e := range p.Told() {
		reasons = append(reasons, strings.Fields(e)[1])
	}
	if want := "NodeEnded RebootDue NodeEnded NodeBack"; strings.Join(reasons, " ") != want {
		t.Errorf("the Events are %s, want %s", reasons, want)
	}
}

// A node whose pods cannot be moved is left to be rebooted when time is up, and says how many are left.
func TestPodsThatCannotBeMoved(t *testing.T) {
	db := on("db", "n1")
	db.OwnerReferences[0].Kind = "StatefulSet"
	p := newPool(t, blue("n1", "a"), on("stuck", "n1"), db, tolerating(on("web", "n1"))).lookAt(newYear)
	end := newYear.Add(21 * day)
	p.lookAt(end)
	p.lookAt(end.Add(59 * time.Minute))
	if due := rebootDue(p.node("n1")); due != "" {
		t.Fatalf("it is left to be rebooted before time is up: %s", due)
	}
	p.lookAt(end.Add(time.Hour))
	n := p.node("n1")
	if due := rebootDue(n); due != "True DrainTimeout" || !strings.HasSuffix(n.Status.Conditions[len(n.Status.Conditions)-1].Message, "Pods that could not be moved in 1h0m0s: 3.") {
		t.Errorf("its condition is %+v", n.Status.Conditions)
	}
}

// What others have written stays.
func TestWhatIsOthersStays(t *testing.T) {
	theirs, cordoned, other := blue("theirs", "a"), blue("cordoned", "b"), blue("other", "c")
	theirs.Annotations = map[string]string{clusterview.ValidUntilAnnotation: "2018-01-05T00:00:00Z"}
	odd := blue("odd", "d")
	odd.Annotations = map[string]string{clusterview.ValidUntilAnnotation: "tomorrow"}
	claimed, early := blue("claimed", "e"), blue("early", "f")
	clusterview.SetEnd(claimed, clusterview.ByNodeClaim, newYear.Add(30*day))
	clusterview.SetEnd(early, clusterview.ByNodeClaim, newYear.Add(12*time.Hour))
	cordoned.Spec.Unschedulable = true
	other.Labels["pool"] = "green"
	p := newPool(t, theirs, cordoned, other, odd, claimed, early).lookAt(newYear)
	ends := p.ends()
	for name, want := range map[string]string{
		"theirs": "2018-01-05T00:00:00Z", "odd": "tomorrow", "other": "", "early": "2018-01-01T12:00:00Z",
	} {
		if ends[name] != want {
			t.Errorf("%s ends %q, want %q", name, ends[name], want)
		}
	}
	if end := ends["claimed"]; end < "2018-01-02" || end >= "2018-01-22" {
		t.Errorf("a node whose NodeClaim expires after 30 days ends %s", end)
	}
	end, err := time.Parse(time.RFC3339, ends["cordoned"])
	p.Must(err)
	p.lookAt(end)
	if n := p.node("theirs"); n.Spec.Unschedulable {
		t.Error("a node whose end somebody else has written is cordoned")
	}
	p.lookAt(end.Add(time.Minute))
	p.reboot("cordoned", "second")
	p.lookAt(end.Add(2 * time.Minute))
	if n := p.node("cordoned"); !n.Spec.Unschedulable || rebootDue(n) != "False Rebooted" {
		t.Errorf("a node that was cordoned before is not so any more: %t, %s", n.Spec.Unschedulable, rebootDue(n))
	}
}

// A node that is rebooted before its end begins anew, and one that somebody gives another end has that.
func TestRebootBeforeTheEnd(t *testing.T) {
	p := newPool(t, blue("n1", "a")).lookAt(newYear)
	p.reboot("n1", "second")
	p.lookAt(newYear.Add(10 * day))
	if end := p.ends()["n1"]; end != "2018-01-31T23:59:59Z" {
		t.Errorf("it ends %s", end)
	}
	p.change("n1", func(n *corev1.Node) { n.Annotations[clusterview.ValidUntilAnnotation] = "2018-03-01T00:00:00Z" })
	p.lookAt(newYear.Add(10*day + time.Minute))
	if end := p.ends()["n1"]; end != "2018-03-01T00:00:00Z" {
		t.Errorf("it ends %s, and not when somebody has said", end)
	}
}

// Vector TV21 over three weeks: 40 nodes of the same age, in three zones. At most two are rebooted a day, never two of a zone at once, and none
// runs for more than 21 days and the time that the one before it takes. A controller that is restarted each day changes no end.
func TestVector_TV21_Wave(t *testing.T) {
	var objects []client.Object
	for i := range 40 {
		name := fmt.Sprintf("n%02d", i)
		objects = append(objects, blue(name, fmt.Sprint("zone-", i%3)), on("pod-of-"+name, name))
	}
	p := newPool(t, objects...)
	p.lookAt(newYear)
	first := p.ends()
	perDay := make(map[string]int)
	for _, end := range first {
		perDay[end]++
	}
	for end, n := range perDay {
		if n > 2 {
			t.Errorf("%d nodes end %s", n, end)
		}
	}
	if len(perDay) != 20 {
		t.Errorf("the nodes end on %d days, want 20: %v", len(perDay), perDay)
	}
	reboots, drained := make(map[string]int), make(map[string]bool)
	for now := newYear; now.Before(newYear.Add(22 * day)); now = now.Add(time.Hour) {
		if now.Hour() == 12 {
			p.restart(p.Options)
		}
		p.lookAt(now)
		out := make(map[string]int)
		for _, n := range p.nodes() {
			if _, is := outOfService(&n); !is {
				if end := n.Annotations[clusterview.ValidUntilAnnotation]; !drained[n.Name] && end != first[n.Name] {
					t.Fatalf("%v: node %s ends %s, and was to end %s", now, n.Name, end, first[n.Name])
				}
				continue
			}
			out[n.Labels[corev1.LabelTopologyZone]]++
			if !n.Spec.Unschedulable {
				t.Fatalf("%v: node %s is out of service and takes pods", now, n.Name)
			}
			switch {
			case !drained[n.Name]:
				// Its pod is moved within the hour.
				drained[n.Name] = true
				p.Delete(on("pod-of-"+n.Name, n.Name))
			case n.Annotations[clusterview.RebootDueAnnotation] != "":
				reboots[now.Format(time.DateOnly)]++
				p.reboot(n.Name, "second")
			}
		}
		for zone, n := range out {
			if n > 1 {
				t.Fatalf("%v: %d nodes of %s are out of service", now, n, zone)
			}
		}
	}
	total := 0
	for date, n := range reboots {
		if total += n; n > 2 {
			t.Errorf("on %s %d nodes are rebooted", date, n)
		}
	}
	if total != 40 {
		t.Errorf("%d of 40 nodes were rebooted: %v", total, slices.Sorted(maps.Keys(reboots)))
	}
	for _, n := range p.nodes() {
		if n.Spec.Unschedulable || rebootDue(&n) != "False Rebooted" || n.Annotations[clusterview.ValidUntilAnnotation] == first[n.Name] {
			t.Errorf("node %s is left cordoned: %t, %s, until %s", n.Name, n.Spec.Unschedulable, rebootDue(&n), n.Annotations[clusterview.ValidUntilAnnotation])
		}
	}
}
