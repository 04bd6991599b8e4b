// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

var (
	web1    = failure.Revision{Workload: "web", Revision: "1"}
	seeds   = failure.Rule{Threshold: 5, Window: 5 * time.Minute}
	options = failure.Options{Rule: seeds, OwnErrors: true}
)

// story is a ledger with a clock.
type story struct {
	*failure.Ledger
	t   *testing.T
	now time.Time
	// failed numbers the failures, so that each is another one.
	failed int
}

func tell(t *testing.T, o failure.Options) *story {
	s := &story{Ledger: failure.New(o), t: t}
	s.at(0)
	return s
}

// at moves the clock to so long after the start.
func (s *story) at(after time.Duration) {
	s.now = start.Add(after)
	s.Advance(s.now)
}

// fail is that many failures of a kind, each of a pod that is gone.
func (s *story) fail(of failure.Revision, node, kind string, n int) {
	for range n {
		s.failed++
		s.Fail(of, node, failure.Rule{}, failure.Failure{Pod: fmt.Sprint("failed-", s.failed), Kind: kind, At: s.now})
	}
}

func (s *story) want(of failure.Revision, node string, want placement.Record) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.Record(of, node)); diff != "" {
		s.t.Errorf("%s after the start: %v on %s (-want +got):\n%s", s.now.Sub(start), of, node, diff)
	}
}

// A failure counts at any time before its window is over, and not at that moment.
func TestTheWindowHasOneBoundary(t *testing.T) {
	s := tell(t, options)
	s.fail(web1, "n1", "Error", 1)
	if at, ok := s.Next(); !ok || !at.Equal(start.Add(5*time.Minute)) {
		t.Errorf("the next change is at %v, %v; want the end of the window", at, ok)
	}
	s.at(5*time.Minute - time.Nanosecond)
	s.want(web1, "n1", placement.Record{Failures: 1, Unforgiven: 1})
	s.at(5 * time.Minute)
	s.want(web1, "n1", placement.Record{Unforgiven: 1})
}

func TestOthersAreNotTouched(t *testing.T) {
	s := tell(t, options)
	web2, db := failure.Revision{Workload: "web", Revision: "2"}, failure.Revision{Workload: "db", Revision: "1"}
	s.fail(web1, "n1", "Error", 5)
	for _, of := range []failure.Revision{web1, web2, db} {
		s.fail(of, "n3", "Sandbox", 1)
	}
	s.want(web2, "n1", placement.Record{})
	s.want(db, "n1", placement.Record{})
	s.fail(web2, "n1", "Error", 5)
	if got := s.Suspects(2); got != nil {
		t.Errorf("two revisions of one workload make a suspect: %+v", got)
	}
	s.fail(db, "n1", "Error", 5)
	s.fail(db, "n2", "Sandbox", 5)
	if diff := cmp.Diff([]failure.Suspect{{Node: "n1", Workloads: []string{"db", "web"}}}, s.Suspects(2)); diff != "" {
		t.Errorf("suspects (-want +got):\n%s", diff)
	}
	s.at(5 * time.Minute)
	if got := s.Suspects(1); got != nil {
		t.Errorf("suspects after the window: %+v", got)
	}
}

// A node that rejects every pod at once is told of thousands of times a minute.
func TestWhatIsKeptIsBounded(t *testing.T) {
	s := tell(t, options)
	for i := range 5000 {
		s.at(time.Duration(i) * time.Millisecond)
		s.fail(web1, "bad", "Error", 1)
	}
	s.want(web1, "bad", placement.Record{Failures: 64, Unforgiven: 64})
	if got := s.Snapshot().Revisions[0].Nodes[0].Failures; len(got) != 64 || !got[63].At.Equal(s.now) {
		t.Errorf("%d failures are kept, want the newest 64", len(got))
	}
	if news, _ := s.Fail(web1, "bad", failure.Rule{}, failure.Failure{Pod: "failed-1", At: start}); news {
		t.Error("a failure that is older than all that are kept is news")
	}
	s.Place(web1, "good", "g")
	s.at(failure.Memory + 5*time.Second)
	if _, more := s.Next(); s.Knows(web1) || more || s.Rule(web1) != seeds {
		t.Errorf("after a day the ledger knows %+v", s.Revisions())
	}
}

// A program that ends with another number each time once blamed every node: no number shows on more than half of them.
func TestRegression_AnotherExitCodeEachTime(t *testing.T) {
	o := options
	o.Class = class
	s := tell(t, o)
	for n := range 4 {
		for i := range 6 {
			s.fail(web1, fmt.Sprintf("n%d", n+1), fmt.Sprintf("Error(%d)", 10*n+i), 1)
		}
	}
	if marks := s.Marks(); len(marks) > 0 {
		t.Errorf("marks are %v", marks)
	}
	if own, tried := s.Own(web1); len(own) != 24 || tried != 4 {
		t.Errorf("own are %v of %d nodes", own, tried)
	}
	// What is of another class is not excused.
	s.fail(web1, "n1", "Image", 5)
	marked(t, s.Ledger, "n1[{Image 5}]")
}

// A program that ends with 1 everywhere does not excuse a node on which it ends otherwise.
func TestAnotherExitCodeOnOneNode(t *testing.T) {
	o := options
	o.Class = class
	s := tell(t, o)
	for _, node := range []string{"n1", "n2", "n3"} {
		s.fail(web1, node, "Error(1)", 5)
	}
	s.fail(web1, "n3", "Error(132)", 5)
	marked(t, s.Ledger, "n3[{Error(132) 5}]")
	// Unless it does so on others, too, if only with other codes.
	s.fail(web1, "n2", "Error(133)", 1)
	marked(t, s.Ledger)
	s.Place(web1, "n4", "d")
	marked(t, s.Ledger, "n3[{Error(132) 5}]")
}

func marked(t *testing.T, l *failure.Ledger, want ...string) {
	t.Helper()
	var got []string
	for _, m := range l.Marks() {
		got = append(got, fmt.Sprint(m.Node, m.Kinds))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// The vectors are those of SwarmKit's own tests of faulty nodes, with its rule: nothing
// counts but the number of failures, and below five it counts for nothing.

// round places one task of a service on n1 and n2 and lets it fail there. On n1 a task of the service runs, of the revision that stands.
func (s *story) round(of failure.Revision, standing placement.Tally) (node string) {
	spread := simulation.New(nil)
	for _, n := range []placement.Node{{Name: "n1", Tally: standing}, {Name: "n2"}} {
		if n.Record = s.Record(of, n.Name); n.Failures < seeds.Threshold {
			n.Failures = 0
		}
		n.Unforgiven = 0
		spread.Set(n)
	}
	node = spread.Place(1, func(string) bool { return true })[0]
	s.at(s.now.Sub(start) + time.Second)
	s.fail(of, node, "Error", 1)
	return node
}

func (s *story) wantFailures(round int, of failure.Revision, node string, want int) {
	s.t.Helper()
	if got := s.Record(of, node).Failures; got != want {
		s.t.Errorf("round %d: %d failures of %v on %s, want %d", round, got, of, node, want)
	}
}

func TestVector_2_5_F1(t *testing.T) {
	s := tell(t, failure.Options{Rule: seeds})
	service := failure.Revision{Workload: "S1"}
	for i := range 8 {
		s.wantFailures(i, service, "n2", min(i, 5))
		s.wantFailures(i, service, "n1", max(0, i-5))
		want := "n2"
		if i >= 5 {
			want = "n1"
		}
		if got := s.round(service, placement.Tally{Revision: 1, Workload: 1, All: 2}); got != want {
			t.Errorf("round %d: the task is on %s, want %s", i, got, want)
		}
	}
}

func TestVector_2_5_F2(t *testing.T) {
	s := tell(t, failure.Options{Rule: seeds})
	v1, v2 := failure.Revision{Workload: "S1", Revision: "1"}, failure.Revision{Workload: "S1", Revision: "2"}
	for i := range 15 {
		s.wantFailures(i, v1, "n2", min(i, 5))
		s.wantFailures(i, v1, "n1", max(0, min(i-5, 1)))
		s.wantFailures(i, v2, "n2", max(0, min(i-6, 5)))
		s.wantFailures(i, v2, "n1", max(0, i-11))
		of, want, standing := v1, "n2", placement.Tally{Revision: 1, Workload: 1, All: 1}
		if i > 5 {
			of, standing.Revision = v2, 0
		}
		if i == 5 || i > 10 {
			want = "n1"
		}
		if got := s.round(of, standing); got != want {
			t.Errorf("round %d: the task of %v is on %s, want %s", i, of, got, want)
		}
	}
}
