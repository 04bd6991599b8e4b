// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

const marked = "Warning NodeFaulty of Node/n1: node n1 deprioritized for ns/StatefulSet.apps/web, revision 1: 5 failures within 5m0s (5 OutOfcpu); used only as a last resort"

func TestAMarkIsTold(t *testing.T) {
	r := newRig(t, options())
	r.activate()
	r.see(r.ready(pod("a", "n2")))
	r.see(r.ready(pod("b", "n3")))
	r.reject("web", "n1", 4)
	r.pass(time.Minute)
	r.announced()
	r.reject("web", "n1", 1)
	r.pass(time.Second)
	r.announced()
	r.pass(time.Second)
	r.announced(marked, "Warning NodeFaulty of StatefulSet/web: node n1 deprioritized")
	r.pass(time.Minute)
	r.announced()
	r.pass(5 * time.Minute)
	r.announced("Normal NodeFaultyCleared of Node/n1: node n1 is no longer faulty for ns/StatefulSet.apps/web, revision 1",
		"Normal NodeFaultyCleared of StatefulSet/web")
}

// A crash that is the workload's own looks like its first node's until it shows on a second.
func TestTheWorkloadsOwnErrorBlamesNobody(t *testing.T) {
	r := newRig(t, options())
	r.activate()
	r.reject("web", "n1", 9)
	r.pass(time.Second)
	for i := range 8 {
		r.reject("web", fmt.Sprintf("n%d", i+2), 9)
	}
	r.pass(time.Hour)
	r.announced()
}

// A workload of one pod that crashes has been on one node only, and that may be as good
// as any other; three of them make no suspect of it.
func TestRegression_SingleCrashersBlameTheirNode(t *testing.T) {
	r := newRig(t, options())
	r.activate()
	crash := func(after time.Duration) {
		r.pass(noon.Add(after).Sub(r.clock.Now()))
		for _, workload := range []string{"web", "db", "cache"} {
			p := podOfWorkload(workload, workload+"-0", "n1").Obj().DeepCopy()
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Time{Time: r.clock.Now()}}},
			}}
			r.see(p)
		}
	}
	for _, after := range []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 150 * time.Second, 290 * time.Second} {
		crash(after)
	}
	r.pass(3 * time.Second)
	r.announced()
	r.record("n1", placement.Record{Failures: 6, Unforgiven: 6})
	// Another pod of one of them is on another node.
	r.see(pod("web-1", "n2").Obj())
	r.pass(3 * time.Second)
	r.announced("Warning NodeFaulty of Node/n1: node n1 deprioritized for ns/StatefulSet.apps/web", "Warning NodeFaulty of StatefulSet/web")
}

// Whether an error is the workload's own hangs on each pod that comes or goes.
func TestRegression_EventsFlap(t *testing.T) {
	flap := func(r *rig, times int, here, away time.Duration) {
		r.see(r.ready(pod("a", "n4")))
		r.see(r.ready(pod("b", "n5")))
		for _, n := range []string{"n1", "n2", "n3"} {
			r.reject("web", n, 5)
		}
		r.pass(20 * time.Second)
		r.announced()
		for i := range times {
			p := pod(fmt.Sprint("c-", i), "n6").Obj()
			r.see(p)
			r.pass(here)
			r.must(r.pods.GetIndexer().Delete(p))
			r.onPodGone(pod(p.Name, "n6").Terminating().Obj())
			r.pass(away)
		}
	}
	// A mark that does not last is not told, however old its failures are.
	r := newRig(t, options())
	r.activate()
	flap(r, 20, time.Second, time.Second)
	r.announced()
	if len(r.marks) > 0 {
		t.Errorf("there are marks: %+v", r.marks)
	}
	// One that was told is not taken back as long as it comes again.
	r = newRig(t, options())
	r.activate()
	flap(r, 20, 3*time.Second, 5*time.Second)
	if len(r.events) != 6 {
		t.Errorf("said\n%s\nwant each of three nodes called faulty, to both", strings.Join(r.events, "\n"))
	}
	r.events = nil
	r.pass(fading)
	if len(r.events) != 6 || !strings.Contains(r.events[0], "Normal NodeFaultyCleared of Node/n1") {
		t.Errorf("when it is over, said\n%s", strings.Join(r.events, "\n"))
	}
	r.events = nil
	r.pass(time.Hour)
	r.announced()
}

// Who stands by says nothing, and once he places pods says what has not been said.
func TestWhoStandsBySaysNothing(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 5)
	r.pass(time.Minute)
	r.announced()
	r.activate()
	r.tick()
	r.announced("Warning NodeFaulty of Node/n1", "Warning NodeFaulty of StatefulSet/web")
}
