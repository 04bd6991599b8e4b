// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// scheduled has the API server say when a pod was bound.
func scheduled(p *corev1.Pod, at time.Time) *corev1.Pod {
	p.CreationTimestamp = metav1.Time{Time: at.Add(-time.Hour)}
	p.Status.Conditions = append(p.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: at}})
	return p
}

// A node whose clock is slow by more than the window fails no less.
func TestRegression_SlowClock(t *testing.T) {
	r := newRig(t, without(options()))
	refused := r.rejected(pod("a", "n1"))
	refused.Status.StartTime = &metav1.Time{Time: noon.Add(-6 * time.Minute)}
	r.see(scheduled(refused, noon))
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})

	unbound := r.rejected(pod("b", "n1"))
	unbound.CreationTimestamp = metav1.Time{Time: noon}
	unbound.Status.StartTime = refused.Status.StartTime
	r.see(unbound)
	r.record("n1", placement.Record{Failures: 2, Unforgiven: 2})

	// Nor does it prove itself sooner: the pod is ready since an hour ago, it says.
	well := r.ready(pod("c", "n1"))
	well.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: noon.Add(-time.Hour)}
	r.see(scheduled(well, noon))
	r.record("n1", placement.Record{Failures: 2, Unforgiven: 2, Unproven: 1})
	r.pass(10 * time.Second)
	r.record("n1", placement.Record{Failures: 2, Proven: true})
}

// Mended before the pod came, by the node's clock: it was not.
func TestRegression_SlowClockIsNotForgiven(t *testing.T) {
	r := newRig(t, without(options()))
	r.forgive("n1", noon.Add(-time.Minute))
	refused := r.rejected(pod("a", "n1"))
	refused.Status.StartTime = &metav1.Time{Time: noon.Add(-2 * time.Minute)}
	r.see(scheduled(refused, noon))
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
}

// A node whose clock is fast proves itself as soon as any other.
func TestRegression_FastClock(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 1)
	well := r.ready(pod("a", "n1"))
	well.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: noon.Add(time.Hour)}
	r.see(well)
	r.pass(5 * time.Second)
	r.see(well) // something else of it has changed
	r.pass(4 * time.Second)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
	r.pass(time.Second)
	r.record("n1", placement.Record{Failures: 1, Proven: true})

	// It was not ready meanwhile: that begins anew.
	r.reject("web", "n2", 1)
	again := r.ready(pod("b", "n2"))
	again.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: noon.Add(time.Hour)}
	r.see(again)
	r.pass(9 * time.Second)
	again = again.DeepCopy()
	again.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: noon.Add(time.Hour + 9*time.Second)}
	r.see(again)
	r.pass(9 * time.Second)
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
	r.pass(time.Second)
	r.record("n2", placement.Record{Failures: 1, Proven: true})
}

// A pod that has succeeded and says nothing of when proves its node all the same.
func TestRegression_SucceededWithoutATime(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 1)
	r.see(pod("a", "n1").Obj())
	r.pass(time.Minute)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
	done := pod("a", "n1").Phase(corev1.PodSucceeded).Obj()
	r.see(done)
	r.record("n1", placement.Record{Failures: 1, Proven: true})

	// Nobody has watched this one: it may have succeeded before n2 went bad.
	r.reject("web", "n2", 1)
	r.see(scheduled(pod("b", "n2").Phase(corev1.PodSucceeded).Obj(), noon))
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1, Proven: true})
}

// A time in the future forgives nothing, neither now nor once it has come: who writes the year 9999 has not mended what breaks until then.
func TestRegression_TheFutureIsNotForgiven(t *testing.T) {
	for _, text := range []string{"9999-01-01T00:00:00Z", noon.Add(time.Hour).Format(time.RFC3339)} {
		r := newRig(t, without(options()))
		r.reject("web", "n1", 1)
		r.annotate("n1", text)
		r.reject("web", "n1", 1)
		r.record("n1", placement.Record{Failures: 2, Unforgiven: 2})
		r.clock.Step(2 * time.Hour)
		if at := r.forgiven("n1"); !at.IsZero() {
			t.Errorf("%s forgives what was before %v", text, at)
		}
	}
}

// A clock that is some seconds fast forgives what was before it was looked at, and nothing of the seconds after.
func TestRegression_ALittleFutureIsNow(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 2)
	r.annotate("n1", noon.Add(30*time.Second).Format(time.RFC3339))
	r.record("n1", placement.Record{})
	r.clock.Step(time.Second)
	r.reject("web", "n1", 1)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})

	// Whoever says it anew has mended it again, and a node that comes back is another.
	r.forgive("n1", noon.Add(time.Second))
	if at := r.forgiven("n1"); !at.Equal(noon.Add(time.Second)) {
		t.Errorf("it forgives up to %v", at)
	}
	r.part("n1")
	if len(r.forgivenAt.byNode) > 0 {
		t.Errorf("%v is kept of a node that is gone", r.forgivenAt.byNode)
	}
}

// A node that is gone has done nothing, and neither has the next of its name: its
// pods, that are gone through again with the revision's first failure, tell of another.
func TestRegression_AnotherNodeOfTheName(t *testing.T) {
	r := newRig(t, without(options()))
	crashing := crashed(pod("crashing", "n1").Obj(), noon)
	r.see(crashing)
	r.reject("web", "n1", 5)
	r.record("n1", placement.Record{Failures: 6, Unforgiven: 6})
	r.part("n1")
	r.record("n1", placement.Record{})
	r.see(crashing)
	r.record("n1", placement.Record{})
	r.leave(crashing)

	r.clock.Step(time.Minute)
	r.again("n1")
	r.record("n1", placement.Record{})
	r.reject("web", "n2", 1)
	r.record("n1", placement.Record{})
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1})
	r.reject("web", "n1", 1)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
}

// An informer that was cut off shows a node that went and came back as one that changed.
func TestRegression_AnotherNodeUnseen(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 5)
	r.reject("web", "n2", 1)
	r.clock.Step(time.Minute)
	r.onNode(st.MakeNode().Name("n1").UID("one").Obj(), r.again("n1"))
	r.record("n1", placement.Record{})
	r.record("n2", placement.Record{Failures: 1, Unforgiven: 1})
}

// What the record says of a node that is gone is not said of the next of its name.
func TestRegression_ARecordOfAnotherNode(t *testing.T) {
	r := newLeader(t, without(options()))
	r.reject("web", "n1", 5)
	r.reject("web", "n2", 5)
	r.write()
	r.clock.Step(time.Minute)
	next := r.renew(without(options()))
	next.again("n1")
	next.readRecord(t.Context())
	next.record("n1", placement.Record{})
	next.record("n2", placement.Record{Failures: 5, Unforgiven: 5})
}

// Which pods have failed is not known before it is known which nodes there are.
func TestPodsBeforeNodes(t *testing.T) {
	r := newRig(t, without(options()))
	r.begun = false
	n1 := r.nodeNow("n1")
	r.part("n1")
	r.see(r.rejected(pod("a", "n1")))
	r.see(pod("b", "n1").Obj())
	r.record("n1", placement.Record{})
	r.join(n1)
	r.observeAll()
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
}
