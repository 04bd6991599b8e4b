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

// A node that is gone has done nothing, and neither has the next of its name: its
// pods, that are gone through again with the revision's first failure, tell of another.
func TestRegression_AnotherNodeOfTheName(t *testing.T) {
	r := newRig(t, without(options()))
	crashing := pod("crashing", "n1").Phase(corev1.PodRunning).Obj()
	crashing.Status.ContainerStatuses = []corev1.ContainerStatus{{
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Time{Time: noon}}},
	}}
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
	r := newRig(t, without(options()))
	r.activate()
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
	n1, _, err := r.Informers.Core().V1().Nodes().Informer().GetIndexer().GetByKey("n1")
	r.must(err)
	r.part("n1")
	r.see(r.rejected(pod("a", "n1")))
	r.see(pod("b", "n1").Obj())
	r.record("n1", placement.Record{})
	r.join(n1.(*corev1.Node))
	r.observeAll()
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
}
