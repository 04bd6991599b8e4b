// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// The vectors are those of SwarmKit's own tests of faulty nodes, with its rule: nothing
// counts but the number of failures, and below five it counts for nothing.

// round places one task of a service on n1 and n2 and lets it fail there. On n1 a
// task of the service runs, of the revision that stands.
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

// A rule that SwarmKit shares: five failures must fall into one window.
func TestSlowFailuresNeverMark(t *testing.T) {
	s := tell(t, failure.Options{Rule: seeds})
	for i := range 20 {
		s.at(time.Duration(i) * 75 * time.Second)
		s.fail(web1, "n1", fmt.Sprint("kind-", i), 1)
		if got := len(s.Marks()); got > 0 {
			t.Fatalf("failure %d: five failures, 75 s apart, are %d marks", i, got)
		}
	}
}
