// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

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
