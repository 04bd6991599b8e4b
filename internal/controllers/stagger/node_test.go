// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	p := newPool(t, blue("a-day-later", "a"), blue("n1", "a"), on("web", "n1"), daemon, done, others, stays)
	p.lookAt(newYear)
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
	if err := p.api.Delete(t.Context(), on("web", "n1")); err != nil {
		t.Fatal(err)
	}
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
	close(p.events.Events)
	var reasons []string
	for e := range p.events.Events {
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
	p := newPool(t, blue("n1", "a"), on("stuck", "n1"), db, tolerating(on("web", "n1")))
	p.lookAt(newYear)
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
	p := newPool(t, theirs, cordoned, other, odd, claimed, early)
	p.lookAt(newYear)
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
	if err != nil {
		t.Fatal(err)
	}
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
	p := newPool(t, blue("n1", "a"))
	p.lookAt(newYear)
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
