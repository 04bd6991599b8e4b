// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// written is a snapshot as a later scheduler reads it.
func written(t rapid.TB, s failure.Snapshot) (read failure.Snapshot) {
	t.Helper()
	text, err := json.Marshal(s)
	placementtest.Must(t, err)
	placementtest.Must(t, json.Unmarshal(text, &read))
	if diff := cmp.Diff(s, read); diff != "" {
		t.Fatalf("read from %s (-want +got):\n%s", text, diff)
	}
	return read
}

// A ledger that reads a snapshot and is told where the pods are knows what the one that
// wrote it knew of every node with failures; reading it again changes nothing.
func TestASuccessorKnowsWhatIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		actions := p.actions()
		// The plain form was checked elsewhere; and what a clock gone back has brought back to life is not in any snapshot.
		delete(actions, "")
		delete(actions, "step back")
		t.Repeat(actions)

		snapshot := written(t, p.ledger.Snapshot())
		successor := failure.New(failure.Options{Rule: p.plain.defaults, OwnErrors: p.plain.ownErrors, Class: class})
		successor.Advance(p.plain.now)
		first := successor.Restore(snapshot)
		if diff := cmp.Diff(p.ledger.Revisions(), first); diff != "" && len(first)+len(p.ledger.Revisions()) > 0 {
			t.Fatalf("revisions that are new to the successor (-want +got):\n%s", diff)
		}
		for _, s := range p.plain.pods {
			successor.Place(s.Revision, s.node, s.uid)
			if s.succeeded.After(s.failed) {
				successor.Succeed(s.Revision, s.node, s.uid, s.succeeded)
			}
		}
		for _, of := range revisions {
			for _, node := range nodes {
				want, got := p.ledger.Record(of, node), successor.Record(of, node)
				// Of pods that have failed once, all is forgotten but that they are there.
				want.Unproven, got.Unproven = 0, 0
				if len(p.plain.on(of, node)) > 0 && got != want {
					t.Fatalf("%v on %s: the successor believes %+v, want %+v", of, node, got, want)
				}
			}
		}
		for name, l := range map[string]*failure.Ledger{"its own": p.ledger, "the same": successor} {
			before, history := l.Snapshot(), l.History()
			if again := l.Restore(snapshot); len(again) > 0 || l.History() != history {
				t.Fatalf("%s snapshot makes %v new, and the history changes: %v", name, again, l.History() != history)
			}
			if diff := cmp.Diff(before, l.Snapshot()); diff != "" {
				t.Fatalf("%s snapshot changes the ledger (-want +got):\n%s", name, diff)
			}
		}
	})
}

// What succeeds everywhere else must not fill the record.
func TestASnapshotHasFewOfTheSoundNodes(t *testing.T) {
	s := tell(t, options)
	s.fail(web1, "bad", "Error", 5)
	for i := range 1000 {
		node := fmt.Sprint("good-", i)
		s.Place(web1, node, node)
		s.Succeed(web1, node, node, s.now)
	}
	if got := s.Snapshot().Revisions[0].Nodes; len(got) != 3 || got[0].Node != "bad" {
		t.Errorf("the snapshot has %d nodes, want the bad one and 2 others", len(got))
	}
}

func TestAnOldSnapshotIsWorthNothing(t *testing.T) {
	s := tell(t, options)
	s.fail(web1, "bad", "Error", 5)
	snapshot := s.Snapshot()
	later := tell(t, options)
	later.at(failure.Memory)
	if first := later.Restore(snapshot); len(first) > 0 || len(later.Revisions()) > 0 {
		t.Errorf("a snapshot of yesterday makes %v known", later.Revisions())
	}
	// An hour is not too long for what has never succeeded since.
	later = tell(t, options)
	later.at(time.Hour)
	later.Restore(snapshot)
	if got := later.Record(web1, "bad"); got.Failures != 0 || got.Unforgiven != 5 {
		t.Errorf("after an hour the record is %+v", got)
	}
}

// A rule that nobody has checked once ended every scheduler that read it: no failure was in a window of no length, not even the last.
func TestRegression_ARuleOfNoWindow(t *testing.T) {
	for _, rule := range []failure.Rule{
		{Threshold: 1, Window: 0}, {Threshold: 1, Window: -time.Hour}, {Threshold: math.MinInt, Window: math.MinInt64},
		{Threshold: math.MaxInt, Window: math.MaxInt64},
	} {
		l := failure.New(failure.Options{Rule: rule})
		l.Advance(start)
		history := failure.NodeHistory{Node: "n1", Failures: []failure.Failure{{Pod: "a", At: start}, {Pod: "b", At: start}, {Pod: "c", At: start.Add(-time.Hour)}}}
		l.Restore(failure.Snapshot{Revisions: []failure.RevisionHistory{{Workload: "web", Revision: "1", Rule: &rule, Nodes: []failure.NodeHistory{history}}}})
		l.Fail(web1, "n1", rule, failure.Failure{Pod: "d", At: start})
		if got := l.Rule(web1); got.Threshold < 1 || got.Threshold > 1000 || got.Window < time.Second || got.Window > 24*time.Hour {
			t.Errorf("%+v is taken for %+v", rule, got)
		}
		if l.Advance(start.Add(49 * time.Hour)); l.Knows(web1) {
			t.Errorf("under %+v it is known for ever", rule)
		}
	}
}

const page = "../../../docs/algorithm.md"

// The page tells the life of a bad node second by second: the ledger must agree.
func TestTheLifeOfABadNodeInTheDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	placementtest.Must(t, err)
	s := tell(t, options)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		at   time.Duration
		what string
	}{
		{0, ""},
		{time.Second, "fails"},
		{2 * time.Second, "fails 4x"},
		{5*time.Minute + time.Second, ""},
		{5*time.Minute + 2*time.Second, ""},
		{9 * time.Minute, "succeeds"},
	} {
		s.now = noon.Add(step.at)
		s.Advance(s.now)
		switch step.what {
		case "fails":
			s.fail(web1, "n1", "Error", 1)
		case "fails 4x":
			s.fail(web1, "n1", "Error", 4)
		case "succeeds":
			s.Succeed(web1, "n1", "a", s.now)
		}
		r, proven := s.Record(web1, "n1"), "no"
		if r.Proven {
			proven = "yes"
		}
		line := fmt.Sprintf("%s %-8s%5d%12d%8s", s.now.Format(time.TimeOnly), step.what, r.Failures, r.Unforgiven, proven)
		if !strings.Contains(string(text), "\n"+line) {
			t.Errorf("%s does not have the line %q", page, line)
		}
	}
}

// The numbers of the page are those of the code.
func TestTheNumbersInTheDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	placementtest.Must(t, err)
	if failure.Memory != 24*time.Hour || !strings.Contains(string(text), "After a day (or a longer window) a failure is forgotten") {
		t.Errorf("%s should say that a failure is forgotten after %v", page, failure.Memory)
	}
	// TestWhatIsKeptIsBounded holds the ledger to the number.
	if !strings.Contains(string(text), "the newest 64 are kept, or twice the threshold if that is more") {
		t.Errorf("%s should say how many failures are kept", page)
	}
}
