// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// write has the record written, if it is to be.
func (r *rig) write() {
	r.Helper()
	_, err := r.writeRecord(r.Context(), nil)
	r.must(err)
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

// What a scheduler knows the next one knows, though the pods are gone that told it; and
// it does not say again what has been said.
func TestTheNextSchedulerKnows(t *testing.T) {
	r := newRig(t, options())
	r.activate()
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

// One that has stood by since knows what was written meanwhile, and has not said what
// the other has.
func TestTheRecordIsReadAgainWhenItsTimeComes(t *testing.T) {
	_, by := newStandby(t)
	by.activate()
	by.record("n1", placement.Record{Failures: 5, Unforgiven: 5})
	by.pass(time.Minute)
	by.announced()
}

func TestWhatIsNotWritten(t *testing.T) {
	r := newRig(t, options())
	r.activate()
	r.write()
	if n := r.writes(); n != 0 {
		t.Errorf("with nothing to say it was written %d times", n)
	}
	r.reject("web", "n1", 1)
	text, err := r.writeRecord(t.Context(), nil)
	r.must(err)
	_, err = r.writeRecord(t.Context(), text)
	r.must(err)
	if n := r.writes(); n != 1 {
		t.Errorf("it was written %d times", n)
	}
	r.clock.Step(25 * time.Hour)
	_, err = r.writeRecord(t.Context(), text)
	r.must(err)
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
	r := newRig(t, without(options()))
	r.activate()
	r.reject("web", "n1", 5)
	r.reject("web", "n2", 5)
	r.reject("web", "n3", 5)
	r.write()
	next := r.renew(without(options()))
	nodes := next.Informers.Core().V1().Nodes().Informer().GetIndexer()
	n1, _, err := nodes.GetByKey("n1")
	r.must(err)
	mended := n1.(*corev1.Node).DeepCopy()
	mended.Annotations = map[string]string{clusterview.FailuresForgivenAnnotation: noon.Format(time.RFC3339)}
	next.join(mended)
	n2, _, err := nodes.GetByKey("n2")
	r.must(err)
	r.must(nodes.Delete(n2))
	next.readRecord(t.Context())
	next.record("n1", placement.Record{})
	next.record("n2", placement.Record{})
	next.record("n3", placement.Record{Failures: 5, Unforgiven: 5})
}

// A crash-looping image on 200 nodes does not displace what failed last elsewhere,
// nor lose a node.
func TestRegression_ACrashLoopLeavesRoom(t *testing.T) {
	r := newRig(t, options())
	now := r.lock()
	r.mu.Unlock()
	of := failure.Revision{Workload: "ns/Deployment.apps/web", Revision: "5d4f8c7b9d"}
	for n := range 200 {
		for k := range 64 {
			r.ledger.Fail(of, fmt.Sprintf("ip-10-0-0-%d.eu-west-1.compute.internal", n), failure.Rule{}, failure.Failure{
				Pod: fmt.Sprintf("f1b9c1c4-3a0c-4a3e-9c51-%012d", k%3), Key: fmt.Sprintf("exit/%d", now.Unix()-int64(k)), Kind: "Error(1)",
				At: now.Add(-time.Duration(k) * time.Second),
			})
		}
	}
	small := failure.Revision{Workload: "ns/Deployment.apps/small", Revision: "x"}
	for i := range 5 {
		r.ledger.Fail(small, "n1", failure.Rule{}, failure.Failure{Pod: fmt.Sprint(i), Key: "phase", Kind: "OutOfcpu", At: now})
	}
	next, _ := r.toWrite()
	text, err := next.Encode(record.Limit)
	if err != nil || len(text) > 100_000 {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	if has := nodesOf(t, text); has[small.Workload] != 1 || has[of.Workload] != 200 {
		t.Errorf("it has %v", has)
	}
	if n := strings.Count(string(text), "OutOfcpu"); n != 5 {
		t.Errorf("it has %d of the failures that mark a node", n)
	}
}

// nodesOf is how many nodes a record has of each workload.
func nodesOf(t *testing.T, text []byte) map[string]int {
	t.Helper()
	r, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	has := make(map[string]int)
	for _, s := range r.Revisions {
		has[s.Workload] = len(s.Nodes)
	}
	return has
}
