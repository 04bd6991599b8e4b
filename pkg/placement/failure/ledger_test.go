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

func TestLifeOfABadNode(t *testing.T) {
	s := tell(t, options)
	s.fail(web1, "bad", "Error", 1)
	s.Place(web1, "good", "g")
	s.Succeed(web1, "good", "g", s.now)
	s.Place(web1, "bad", "a")
	s.Succeed(web1, "bad", "a", s.now.Add(-time.Second))
	s.want(web1, "bad", placement.Record{Failures: 1, Unforgiven: 1, Proven: true})

	s.at(time.Minute)
	s.fail(web1, "bad", "Error", 3)
	s.want(web1, "bad", placement.Record{Failures: 4, Unforgiven: 4, Proven: true})
	s.at(2 * time.Minute)
	s.fail(web1, "bad", "Error", 1)
	// The mark takes back what was proven, though a still runs.
	s.want(web1, "bad", placement.Record{Failures: 5, Unforgiven: 5})
	mark := failure.Mark{Revision: web1, Node: "bad", Failures: 5, Kinds: []failure.Count{{Kind: "Error", Failures: 5}}, Since: s.now, Elsewhere: true}
	if diff := cmp.Diff([]failure.Mark{mark}, s.Marks()); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}

	s.at(5 * time.Minute)
	s.want(web1, "bad", placement.Record{Failures: 4, Unforgiven: 5})
	s.at(time.Hour)
	s.Place(web1, "bad", "b")
	s.want(web1, "bad", placement.Record{Unforgiven: 5, Unproven: 1})
	s.Succeed(web1, "bad", "b", s.now)
	if s.Knows(web1) {
		t.Error("the success has forgiven all, and the revision is still known")
	}
	s.want(web1, "bad", placement.Record{})
}

func TestOfAFailureToldTwiceOneCounts(t *testing.T) {
	s := tell(t, options)
	s.at(time.Minute)
	f := failure.Failure{Pod: "a", Key: "1", Kind: "Error", At: s.now}
	for _, tc := range []struct {
		name        string
		f           failure.Failure
		news, first bool
		failures    int
	}{
		{"a failure", f, true, true, 1},
		{"again", f, false, false, 1},
		{"again, said to be later", failure.Failure{"a", "1", "Error", s.now.Add(time.Second)}, false, false, 1},
		{"again, and it was earlier", failure.Failure{"a", "1", "Error", start}, true, false, 1},
		{"the pod's next", failure.Failure{"a", "2", "Error", s.now}, true, false, 2},
		{"another pod's", failure.Failure{"b", "1", "Error", s.now}, true, false, 3},
		{"one of before the window", failure.Failure{"c", "1", "Error", s.now.Add(-5 * time.Minute)}, false, false, 3},
	} {
		news, first := s.Fail(web1, "n1", failure.Rule{}, tc.f)
		if got := s.Record(web1, "n1").Failures; news != tc.news || first != tc.first || got != tc.failures {
			t.Errorf("%s: news %v, first %v, failures %d; want %v, %v, %d", tc.name, news, first, got, tc.news, tc.first, tc.failures)
		}
	}
	s.at(5 * time.Minute)
	s.want(web1, "n1", placement.Record{Failures: 2, Unforgiven: 3})
}

// A node's clock may be ahead: its failure is one of now, and lasts no longer.
func TestATimeToComeIsNow(t *testing.T) {
	s := tell(t, options)
	s.Fail(web1, "n1", failure.Rule{}, failure.Failure{Pod: "a", At: s.now.Add(time.Hour)})
	s.want(web1, "n1", placement.Record{Failures: 1, Unforgiven: 1})
	s.at(5 * time.Minute)
	s.want(web1, "n1", placement.Record{Unforgiven: 1})
	s.Succeed(web1, "n1", "b", s.now.Add(time.Hour))
	if s.Knows(web1) {
		t.Error("the success has forgiven all, and the revision is still known")
	}
}

func TestAWorkloadsOwnErrorsBlameNobody(t *testing.T) {
	s := tell(t, options)
	blamed := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range s.Marks() {
			got = append(got, fmt.Sprint(m.Node, m.Kinds))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("marks (-want +got):\n%s", diff)
		}
	}
	s.fail(web1, "n1", "Image", 9)
	blamed() // there is no other node to compare it with
	s.want(web1, "n1", placement.Record{Failures: 9, Unforgiven: 9})
	s.fail(web1, "n2", "Image", 4)
	s.fail(web1, "n2", "Sandbox", 2)
	own, tried := s.Own(web1)
	if diff := cmp.Diff([]failure.Own{{"Image", 2}}, own); diff != "" || tried != 2 {
		t.Errorf("own errors of %d nodes (-want +got):\n%s", tried, diff)
	}
	// They count, or who is placed would forget where it has failed; but alike.
	blamed()
	s.want(web1, "n1", placement.Record{Failures: 5, Unforgiven: 9})
	s.want(web1, "n2", placement.Record{Failures: 5, Unforgiven: 6})
	s.fail(web1, "n2", "Sandbox", 4)
	blamed("n2[{Sandbox 6}]")
	s.want(web1, "n2", placement.Record{Failures: 6, Unforgiven: 10})
	// It runs elsewhere: two of four nodes are not more than half.
	s.Place(web1, "n3", "c")
	blamed("n2[{Sandbox 6}]")
	s.Place(web1, "n4", "d")
	blamed("n1[{Image 9}]", "n2[{Sandbox 6} {Image 4}]")
	s.want(web1, "n1", placement.Record{Failures: 9, Unforgiven: 9})
	s.Gone(web1, "n4", "d")
	blamed("n2[{Sandbox 6}]")
	s.ForgetNode("n1")
	s.Gone(web1, "n3", "c")
	blamed()

	// Without the rule they count, on one node as on two.
	s = tell(t, failure.Options{Rule: seeds})
	s.fail(web1, "n1", "Image", 5)
	blamed("n1[{Image 5}]")
	s.fail(web1, "n2", "Image", 5)
	blamed("n1[{Image 5}]", "n2[{Image 5}]")
}

// Somebody has mended the node: what failed later has not heard of it.
func TestForgiving(t *testing.T) {
	s := tell(t, options)
	s.Fail(web1, "n1", failure.Rule{}, failure.Failure{Pod: "a", Key: "1", At: s.now})
	s.Place(web1, "n1", "a")
	s.at(time.Second)
	s.fail(web1, "n1", "Error", 2)
	s.fail(web1, "n2", "Error", 1)
	history := s.History()
	s.Forgive("n1", start.Add(-time.Second))
	if s.History() != history {
		t.Error("what forgives nothing changes the history")
	}
	s.Forgive("n1", start)
	s.want(web1, "n1", placement.Record{Failures: 2, Unforgiven: 2})
	if s.History() == history {
		t.Error("the history does not say that something is forgiven")
	}
	s.Forgive("n1", s.now)
	s.want(web1, "n1", placement.Record{})
	s.want(web1, "n2", placement.Record{Failures: 1, Unforgiven: 1})
	s.Forgive("n2", s.now.Add(time.Hour))
	if s.Knows(web1) {
		t.Error("all is forgiven, and the revision is still known")
	}
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

func TestARuleOfItsOwn(t *testing.T) {
	s := tell(t, failure.Options{Rule: seeds})
	long := failure.Rule{Threshold: 1, Window: time.Hour}
	s.Fail(web1, "n1", long, failure.Failure{Pod: "a", At: s.now.Add(-30 * time.Minute)})
	if got := s.Marks(); len(got) != 1 || got[0].Failures != 1 {
		t.Errorf("marks: %+v, want one for a failure half an hour ago", got)
	}
	s.SetRule(web1, seeds)
	s.want(web1, "n1", placement.Record{Unforgiven: 1})
	if got := s.Marks(); len(got) != 0 {
		t.Errorf("marks after the rule has changed: %+v", got)
	}
	web2 := failure.Revision{Workload: "web", Revision: "2"}
	if s.Fail(web2, "n1", long, failure.Failure{Pod: "b", At: s.now}); s.Rule(web1) != seeds || s.Rule(web2) != long {
		t.Errorf("of two revisions one has the rule %+v, the other %+v", s.Rule(web1), s.Rule(web2))
	}
	s.ForgetWorkload("web")
	s.SetRule(web1, long)
	if got := s.Rule(web1); got != seeds {
		t.Errorf("a revision without failures has the rule %+v, want the default", got)
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

func TestForgetting(t *testing.T) {
	for name, forget := range map[string]func(*story){
		"the revision": func(s *story) { s.Forget(web1) },
		"the workload": func(s *story) { s.ForgetWorkload("web") },
		"its nodes":    func(s *story) { s.ForgetNode("n1"); s.ForgetNode("n2") },
	} {
		s := tell(t, options)
		s.fail(web1, "n1", "Error", 5)
		s.fail(web1, "n2", "Sandbox", 1)
		s.Place(web1, "n3", "c")
		_, _, before := s.Changed(web1, 0)
		forget(s)
		nodes, anew, version := s.Changed(web1, before)
		if _, more := s.Next(); more || s.Knows(web1) || len(s.Marks()) > 0 || len(nodes) > 0 || !anew || version != 0 {
			t.Errorf("%s: known %v, marks %v, changed %v %v %d", name, s.Knows(web1), s.Marks(), nodes, anew, version)
		}
		s.fail(web1, "n2", "Error", 1)
		if _, anew, _ := s.Changed(web1, before); !anew {
			t.Errorf("%s: what is known again looks as if it had been known all the time", name)
		}
	}
}
