// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reporting is another node that has reported some time after the beginning.
func reporting(after time.Duration) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(begin.Add(after))},
	}}}
}

// Where the controller's clock jumps ahead no pod is lost: other nodes say that it is not so late. It is lost when it is as late by theirs.
func TestAClockThatJumps(t *testing.T) {
	const lostAfter = time.Hour
	says := keeps.DeepCopy()
	says.LostAfterSeconds = int32(lostAfter / time.Second)
	r := newRig(t, policyFor("web", says), pod("p", "web", "StatefulSet", "db"), reporting(0))
	r.after(31 * time.Second)
	for _, step := range []struct {
		at, reported time.Duration
		want         string
	}{
		{24 * time.Hour, 0, "without end"},
		{24 * time.Hour, 49 * time.Minute, "without end"},
		{lostAfter, 55 * time.Minute, "0"},
	} {
		if err := r.Client.Status().Update(t.Context(), reporting(step.reported)); err != nil {
			t.Fatal(err)
		}
		r.after(step.at)
		if got := r.tolerates("p"); got != step.want {
			t.Errorf("at %s, with a report at %s, it tolerates it %s, want %s", step.at, step.reported, got, step.want)
		}
	}
}

// Where no node reports, as where kubelets only renew their Leases, a pod is lost when the controller itself has seen the time go by.
func TestAClockThatJumpsWhereNoNodeReports(t *testing.T) {
	const lostAfter = 15 * time.Minute
	says := keeps.DeepCopy()
	says.LostAfterSeconds = int32(lostAfter / time.Second)
	r := newRig(t, policyFor("web", says), pod("p", "web", "StatefulSet", "db"), reporting(-time.Hour))
	r.after(31 * time.Second)
	for r.tolerates("p") != "0" && r.looks < 1000 {
		r.after(24 * time.Hour)
	}
	if seen, want := time.Duration(r.looks)*every, lostAfter-10*time.Minute; seen < want || seen > want+3*every {
		t.Errorf("it is lost when the controller has run for %s, want %s", seen, want)
	}
}
