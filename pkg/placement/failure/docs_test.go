// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

const page = "../../../docs/algorithm.md"

// The page tells the life of a bad node second by second: the ledger must agree.
func TestTheLifeOfABadNodeInTheDocs(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if failure.Memory != 24*time.Hour || !strings.Contains(string(text), "After a day (or a longer window) a failure is forgotten") {
		t.Errorf("%s should say that a failure is forgotten after %v", page, failure.Memory)
	}
	// TestWhatIsKeptIsBounded holds the ledger to the number.
	if !strings.Contains(string(text), "the newest 64 are kept, or twice the threshold if that is more") {
		t.Errorf("%s should say how many failures are kept", page)
	}
}
