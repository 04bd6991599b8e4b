// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

const marked = "Warning NodeFaulty of Node/n1: node n1 deprioritized for ns/StatefulSet.apps/web, revision 1: 5 failures within 5m0s (5 OutOfcpu); used only as a last resort"

func TestAMarkIsTold(t *testing.T) {
	r := newLeader(t, options())
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

// Events are written later than they are recorded, when marks may change.
func TestRegression_EventsShareNothingWithMarks(t *testing.T) {
	r := newLeader(t, without(options()))
	r.reject("web", "n1", 5)
	r.pass(lasting)
	r.announced("Warning NodeFaulty of Node/n1", "Warning NodeFaulty of StatefulSet/web")
	for _, m := range r.marks {
		if slices.Contains(r.about, apiruntime.Object(&m.regarding)) {
			t.Errorf("an Event refers to %s by the mark itself", m.regarding.Name)
		}
	}
}

// A crash that is the workload's own looks like its first node's until it shows on a second.
func TestTheWorkloadsOwnErrorBlamesNobody(t *testing.T) {
	r := newLeader(t, options())
	r.reject("web", "n1", 9)
	r.pass(time.Second)
	for i := range 8 {
		r.reject("web", fmt.Sprintf("n%d", i+2), 9)
	}
	r.pass(time.Hour)
	r.announced()
}

// A workload of one pod that crashes has been on one node only, and that may be as good as any other; three of them make no suspect of it.
func TestRegression_SingleCrashersBlameTheirNode(t *testing.T) {
	r := newLeader(t, options())
	crash := func(after time.Duration) {
		r.pass(noon.Add(after).Sub(r.clock.Now()))
		for _, workload := range []string{"web", "db", "cache"} {
			r.see(crashed(podOfWorkload(workload, workload+"-0", "n1").Obj(), r.clock.Now()))
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
			r.leave(p)
			r.pass(away)
		}
	}
	// A mark that does not last is not told, however old its failures are.
	r := newLeader(t, options())
	flap(r, 20, time.Second, time.Second)
	r.announced()
	if len(r.marks) > 0 {
		t.Errorf("there are marks: %+v", r.marks)
	}
	// One that was told is not taken back as long as it comes again.
	r = newLeader(t, options())
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

// What a replica that stands by has seen counts together with what it sees once it places pods.
func TestFailuresBeforeAndAfterATakeoverAddUp(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 3)
	r.activate()
	r.reject("web", "n1", 1)
	r.record("n1", placement.Record{Failures: 4, Unforgiven: 4})
	if marks := r.ledger.Marks(); len(marks) != 0 {
		t.Errorf("marks are %+v", marks)
	}
	r.reject("web", "n1", 1)
	if marks := r.ledger.Marks(); len(marks) != 1 {
		t.Errorf("marks are %+v", marks)
	}
}

// After a long record the next one waits, but not when it has a new mark in it; and then not less than after a short one.
func TestANewMarkEndsTheRest(t *testing.T) {
	r := newRig(t, options())
	r.reject("web", "n1", 1)
	r.tick()
	if len(r.urgent) > 0 {
		t.Error("a failure that marks nothing is urgent")
	}
	rested := make(chan bool, 1)
	go func() { rested <- r.rest(t.Context(), time.Minute) }()
	r.step(between)
	r.step(between)
	select {
	case <-rested:
		t.Fatal("it was over without a new mark")
	default:
	}
	token(r.urgent)
	select {
	case ended := <-rested:
		if !ended {
			t.Error("the context has ended")
		}
	case <-time.After(10 * time.Second):
		t.Error("a new mark does not end it")
	}
}

func TestANewMarkIsUrgent(t *testing.T) {
	r := newRig(t, options())
	for range 5 {
		r.see(r.ready(podOfWorkload("web", "sound", "n2")))
		r.reject("web", "n1", 1)
	}
	r.tick()
	if len(r.ledger.Marks()) != 1 {
		t.Fatalf("the marks are %v", r.ledger.Marks())
	}
	if len(r.urgent) != 1 {
		t.Fatal("a new mark is not urgent")
	}
	<-r.urgent
	r.tick()
	if len(r.urgent) > 0 {
		t.Error("an old mark is urgent")
	}
}

// step moves the clock when somebody waits for it.
func (r *rig) step(d time.Duration) {
	for !r.clock.HasWaiters() {
		runtime.Gosched()
	}
	r.clock.Step(d)
}

// A right that is missing is said once, however often it is missed, and again when it was there meanwhile.
func TestRegression_AMissingRightIsSaidOnce(t *testing.T) {
	r := newRig(t, options())
	missing := true
	r.client.PrependReactor("get", "configmaps", func(clientgotesting.Action) (bool, apiruntime.Object, error) {
		return missing, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "espalier-failures", nil)
	})
	r.activate()
	const said = "Warning FailureRecordUnreadable of ConfigMap/espalier-failures: reading ConfigMap kube-system/espalier-failures"
	r.announced(said)
	for range 3 {
		if _, err := r.writeRecord(t.Context(), nil); err == nil {
			t.Error("it was written")
		}
	}
	r.announced()
	missing = false
	r.write()
	missing = true
	r.readRecord(t.Context())
	r.readRecord(t.Context())
	r.announced(said)
}

// Who stands by does not count again what the one who places pods counts.
func TestRegression_WhoStandsByHasNoGauges(t *testing.T) {
	o := options()
	r := newRig(t, o)
	gauge := func() float64 {
		t.Helper()
		n, err := testutil.GetGaugeMetricValue(faultyNodes.WithLabelValues(o.SchedulerName))
		must(r, err)
		return n
	}
	faultyNodes.WithLabelValues(o.SchedulerName).Set(42)
	r.see(r.ready(pod("a", "n2")))
	r.see(r.ready(pod("b", "n3")))
	r.reject("web", "n1", 5)
	r.pass(10 * time.Second)
	if n := gauge(); n != 42 {
		t.Errorf("it has %v", n)
	}
	r.activate()
	r.pass(time.Second)
	if n := gauge(); n != 1 {
		t.Errorf("it has %v, and places pods", n)
	}
}

// What is logged goes to the logger of the context that the cache was made with, as all that the scheduler logs.
func TestLogsGoToTheLoggerOfTheContext(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(4)))
	r := newRig(t, options())
	ctx := klog.NewContext(t.Context(), logger)
	var err error
	from := r.Sources
	from.Informers = informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	if r.Cache, err = New(ctx, options(), from); err != nil {
		t.Fatal(err)
	}
	r.observeAll()
	r.forgive("n3", noon.Add(time.Hour))
	r.reject("web", "n3", 1)
	for _, node := range []string{"n1", "n2"} {
		r.join(st.MakeNode().Name(node).Obj())
		r.reject("web", node, 1)
	}
	r.tick()
	got := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for _, want := range []string{"A pod failed on its node", "Blaming no node: the error is the workload's own", "Nothing is forgiven"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q was not logged there:\n%s", want, got)
		}
	}
}
