// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// write has the record written, if it is to be.
func (r *rig) write() {
	r.Helper()
	_, err := r.writeRecord(r.Context(), nil)
	must(r, err)
}

// writes counts the writings so far.
func (r *rig) writes() (n int) {
	for _, a := range r.client.Actions() {
		if a.GetResource().Resource == "configmaps" && a.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

// What a scheduler knows the next one knows, though the pods are gone that told it; and it does not say again what has been said.
func TestTheNextSchedulerKnows(t *testing.T) {
	r := newLeader(t, options())
	r.see(r.ready(pod("a", "n2")))
	r.see(r.ready(pod("b", "n3")))
	r.reject("web", "n1", 6)
	r.pass(3 * time.Second)
	r.announced("Warning NodeFaulty of Node/n1", "Warning NodeFaulty of StatefulSet/web")
	r.write()

	next := r.renew(options())
	next.see(r.ready(pod("a", "n2")))
	next.readRecord(t.Context())
	next.record("n1", placement.Record{Failures: 6, Unforgiven: 6})
	next.record("n2", placement.Record{Unproven: 1})
	next.activate() // reads it again
	next.record("n1", placement.Record{Failures: 6, Unforgiven: 6})
	next.pass(time.Minute)
	next.announced()
	next.pass(5 * time.Minute)
	next.announced("Normal NodeFaultyCleared of Node/n1", "Normal NodeFaultyCleared of StatefulSet/web")
}

func TestWhatIsNotWritten(t *testing.T) {
	r := newLeader(t, options())
	r.write()
	if n := r.writes(); n != 0 {
		t.Errorf("with nothing to say it was written %d times", n)
	}
	r.reject("web", "n1", 1)
	text, err := r.writeRecord(t.Context(), nil)
	must(r, err)
	_, err = r.writeRecord(t.Context(), text)
	must(r, err)
	if n := r.writes(); n != 1 {
		t.Errorf("it was written %d times", n)
	}
	r.clock.Step(25 * time.Hour)
	_, err = r.writeRecord(t.Context(), text)
	must(r, err)
	if n := r.writes(); n != 2 {
		t.Errorf("when all is forgotten it was written %d times", n)
	}
}

func TestARecordThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		data     map[string]string
		err      error
		said     string
		replaced bool
	}{
		"torn":              {map[string]string{record.Key: "{\"version\":1,"}, nil, "cannot be read and will be replaced", true},
		"of a later time":   {map[string]string{record.Key: "{\"version\":2}"}, nil, "version 2", true},
		"empty":             {map[string]string{record.Key: ""}, nil, "", true},
		"somebody else's":   {map[string]string{"kubeconfig": "x"}, nil, "is not ours", false},
		"nothing at all":    {nil, nil, "", true},
		"cannot be reached": {nil, errors.New("no route"), "no route", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "espalier-failures"}, Data: tc.data})
			if tc.err != nil {
				r.client.PrependReactor("get", "configmaps", func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			r.activate()
			if got := strings.Join(r.events, "\n"); (got == "") != (tc.said == "") || !strings.Contains(got, tc.said) {
				t.Errorf("said %q, want %q", got, tc.said)
			}
			r.reject("web", "n1", 1)
			r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
			_, err := r.writeRecord(t.Context(), nil)
			if (err == nil) != tc.replaced || (r.writes() > 0) != tc.replaced {
				t.Errorf("it was written %d times: %v", r.writes(), err)
			}
		})
	}
}

// What is forgiven a node, and nodes that are gone, are not brought back.
func TestARecordOfForgivenNodes(t *testing.T) {
	r := newLeader(t, without(options()))
	r.reject("web", "n1", 5)
	r.reject("web", "n2", 5)
	r.reject("web", "n3", 5)
	r.write()
	next := r.renew(without(options()))
	next.forgive("n1", noon)
	must(r, next.Informers.Core().V1().Nodes().Informer().GetIndexer().Delete(next.nodeNow("n2")))
	next.readRecord(t.Context())
	next.record("n1", placement.Record{})
	next.record("n2", placement.Record{})
	next.record("n3", placement.Record{Failures: 5, Unforgiven: 5})
}

// A crash-looping image on 200 nodes does not displace what failed last elsewhere, nor lose a node.
func TestRegression_ACrashLoopLeavesRoom(t *testing.T) {
	r := newRig(t, options())
	r.crashLoops("ns", 1, 200, 64)
	r.reject("small", "n1", 5)
	next, _ := r.toWrite()
	text, err := next.Encode(record.Limit)
	if err != nil || len(text) > 100_000 {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	has, err := record.Decode(text)
	must(r, err)
	if len(has.Revisions) != 2 || len(has.Revisions[0].Nodes)+len(has.Revisions[1].Nodes) != 201 {
		t.Errorf("it has %d revisions", len(has.Revisions))
	}
	if n := strings.Count(string(text), "OutOfcpu"); n != 5 {
		t.Errorf("it has %d of the failures that mark a node", n)
	}
}

// written is the record as the API server has it.
func (r *rig) written() string {
	r.Helper()
	cm, err := r.client.CoreV1().ConfigMaps("kube-system").Get(context.Background(), "espalier-failures", metav1.GetOptions{})
	must(r, err)
	return cm.Data[record.Key]
}

// newStandby is a scheduler that has written of a node that it is faulty, and one that stands by and has read the record before.
func newStandby(t *testing.T) (leader, standby *rig) {
	t.Helper()
	leader = newLeader(t, options())
	standby = leader.renew(options())
	standby.readRecord(t.Context())
	leader.reject("web", "n1", 5)
	leader.pass(3 * time.Second)
	leader.write()
	return leader, standby
}

// Who stood by does not replace a record that he could not read when he took over: he has read an older one.
func TestRegression_TakeoverWithoutARecord(t *testing.T) {
	r, by := newStandby(t)
	broken := true
	r.client.PrependReactor("get", "configmaps", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return broken, nil, errors.New("timeout")
	})
	by.activate()
	by.reject("other", "n7", 1)
	if _, err := by.writeRecord(t.Context(), nil); !errors.Is(err, errUnread) {
		t.Errorf("it writes: %v", err)
	}
	broken = false
	by.write()
	for _, workload := range []string{"web", "other"} {
		if text := by.written(); !strings.Contains(text, "StatefulSet.apps/"+workload) {
			t.Errorf("%s is not in the record: %s", workload, text)
		}
	}
	by.record("n1", placement.Record{Failures: 5, Unforgiven: 5})
}

// The record is read though something else cannot be, and again by one that has read it before.
func TestRegression_TakeoverWithoutEvents(t *testing.T) {
	_, by := newStandby(t)
	by.Activate(t.Context()) // it is not ready
	by.record("n1", placement.Record{Failures: 5, Unforgiven: 5})
}

// A scheduler that does not know its nodes yet makes nothing of the record, and leaves it alone.
func TestTakeoverBeforeTheBeginning(t *testing.T) {
	r := newLeader(t, options())
	r.reject("web", "n1", 5)
	r.write()
	early := r.renew(options())
	early.begun = false
	early.part("n1")
	early.Activate(t.Context())
	if _, err := early.writeRecord(t.Context(), nil); !errors.Is(err, errUnread) {
		t.Errorf("it writes: %v", err)
	}
	early.again("n1").CreationTimestamp = metav1.Time{}
	early.observeAll()
	early.write()
	early.record("n1", placement.Record{Failures: 5, Unforgiven: 5})
}

// recordOf is a record of failures of web on n1 at noon, and of a success on n2, under a rule.
func recordOf(rule string) string {
	return fmt.Sprintf(`{"version":1,"revisions":[{"workload":"ns/StatefulSet.apps/web","revision":"1","rule":%s,"nodes":[
		{"node":"n1","failures":[{"pod":"a","kind":"Error","at":"2026-01-31T11:59:58Z"},{"pod":"b","at":"2026-01-31T11:59:59Z"},{"pod":"a","at":"9999-01-01T00:00:00Z"}]},
		{"node":"n2","succeeded":"2026-01-31T12:00:00Z"},{"node":""}],
		"family":"uid-of-web","regarding":{"kind":"StatefulSet","name":"web"},"marked":["n1","","n99"]}]}`, rule)
}

// Whoever may write ConfigMaps could write anything: a scheduler that ends by it would end at every start.
func FuzzRecord(f *testing.F) {
	for _, rule := range []string{
		"null", "{}", `{"threshold":5,"window":300000000000}`, `{"threshold":2,"window":0}`, `{"threshold":1,"window":-1}`,
		`{"threshold":9223372036854775807,"window":9223372036854775807}`, `{"threshold":-9223372036854775808,"window":-9223372036854775808}`,
	} {
		f.Add([]byte(recordOf(rule)))
	}
	f.Add([]byte(`{"version":-1,"revisions":[{"nodes":null},{"nodes":[{"node":"n1","failures":[{}]}]}]}`))
	f.Add([]byte(`{"version":1,"revisions":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newRig(t, options())
		known, err := record.Decode(text)
		if err != nil && len(known.Revisions) > 0 {
			t.Errorf("what cannot be read has %d revisions", len(known.Revisions))
		}
		r.restore(known)
		r.activate()
		r.reject("web", "n1", 6)
		r.see(r.ready(pod("well", "n2")))
		r.pass(time.Minute)
		written, err := r.writeRecord(t.Context(), nil)
		must(r, err)
		next := r.renew(options())
		if known, err = record.Decode(written); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		next.restore(known)
		next.clock.Step(49 * time.Hour)
		next.tick()
		if left := next.ledger.Revisions(); len(left) > 0 {
			t.Errorf("after two days %v is known", left)
		}
	})
}

func suspecting(t *testing.T) *rig {
	o := without(options())
	o.ProvenAfter = 0
	r := newLeader(t, o)
	for _, workload := range []string{"web", "other/db", "web2", "other/db2"} {
		r.see(r.ready(podOfWorkload(workload, "well-of-"+path.Base(workload), "n3")))
	}
	return r
}

// wantSuspects wants these nodes to be in the record, to be tainted.
func (r *rig) wantSuspects(when string, want ...string) {
	r.Helper()
	r.write()
	written, err := record.Decode([]byte(r.written()))
	must(r, err)
	if !slices.Equal(written.Suspects, want) {
		r.Errorf("%s: the record has the suspects %q, want %q", when, written.Suspects, want)
	}
}

func TestSuspects(t *testing.T) {
	r := suspecting(t)
	r.reject("web", "n1", 5)
	r.pass(3 * time.Second)
	r.announced("Warning NodeFaulty of Node/n1", "Warning NodeFaulty of StatefulSet/web")
	r.wantSuspects("one workload")
	r.reject("other/db", "n1", 5)
	r.pass(3 * time.Second)
	r.announced("Warning NodeFaulty of Node/n1", "Warning NodeFaulty of StatefulSet/db",
		"Warning NodeSuspect of Node/n1: node n1 is faulty for 2 workloads of 2 namespaces: ns/StatefulSet.apps/web, other/StatefulSet.apps/db")
	r.wantSuspects("two workloads", "n1")

	r.reject("web2", "n2", 5)
	r.reject("other/db2", "n2", 5)
	r.pass(time.Minute)
	r.wantSuspects("another node", "n1", "n2")
	r.events = nil
	r.pass(6 * time.Minute)
	if got := strings.Join(r.events, "\n"); !strings.Contains(got, "Normal NodeSuspectCleared of Node/n1") {
		t.Errorf("said\n%s", got)
	}
	r.wantSuspects("when all is over")
}

// A tenant who may make pods in one namespace can make any number of workloads that fail. That calls for no Event, no
// gauge and no taint: it takes what no tenant alone can do. A taint takes success elsewhere besides.
func TestOneTenantTaintsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		failing []string
		before  func(r *rig)
		want    []string
	}{
		"of two namespaces":        {[]string{"web", "other/db"}, nil, []string{"n1"}},
		"of one namespace":         {[]string{"web", "web2"}, nil, nil},
		"that succeeds nowhere":    {[]string{"web", "other/fails"}, nil, nil},
		"and one beside them":      {[]string{"web", "web2", "other/fails"}, nil, nil},
		"of which no pod is there": {[]string{"web", "other/db"}, func(r *rig) { r.leave(podOfWorkload("other/db", "well-of-db", "n3").Obj()) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := suspecting(t)
			for _, workload := range tc.failing {
				r.reject(workload, "n1", 5)
			}
			if tc.before != nil {
				tc.before(r)
			}
			r.pass(3 * time.Second)
			alone := !slices.ContainsFunc(tc.failing, func(w string) bool { return strings.HasPrefix(w, "other/") })
			if got := strings.Join(r.events, "\n"); strings.Contains(got, "Warning NodeSuspect of Node/n1") == alone {
				t.Errorf("of one namespace alone: %t, said\n%s", alone, got)
			}
			got, err := testutil.GetGaugeMetricValue(suspectNodes.WithLabelValues(r.options.SchedulerName))
			if err != nil || (got > 0) == alone {
				t.Errorf("of one namespace alone: %t, %v nodes are suspect, %v", alone, got, err)
			}
			r.wantSuspects(name, tc.want...)
		})
	}
}

// A node that is to be tainted stays so for as long as it is suspect, though the pods that showed it end.
func TestASuspectOutlivesItsPods(t *testing.T) {
	r := suspecting(t)
	r.reject("web", "n1", 5)
	r.reject("other/db", "n1", 5)
	r.pass(3 * time.Second)
	r.leave(podOfWorkload("other/db", "well-of-db", "n3").Obj())
	r.pass(time.Minute)
	r.wantSuspects("after its pods", "n1")
}

// A scheduler that takes over keeps the suspects of the record for as long as they are, although it
// has not seen the pods that showed it, and announces nothing twice.
func TestRegression_TakeoverOfSuspects(t *testing.T) {
	for name, stoodBy := range map[string]time.Duration{"started": 0, "stood by": time.Minute} {
		t.Run(name, func(t *testing.T) {
			r := suspecting(t)
			r.reject("web", "n1", 5)
			r.reject("other/db", "n1", 5)
			r.pass(3 * time.Second)
			r.write()
			next := r.renew(r.options)
			if stoodBy > 0 {
				next.readRecord(t.Context())
				next.pass(stoodBy)
			}
			next.activate()
			next.pass(3 * time.Second)
			next.announced()
			next.wantSuspects("taken over", "n1")
			next.pass(6 * time.Minute)
			if got := strings.Join(next.events, "\n"); !strings.Contains(got, "Normal NodeSuspectCleared of Node/n1") {
				t.Errorf("said\n%s", got)
			}
			next.wantSuspects("when it is over")
		})
	}
}
