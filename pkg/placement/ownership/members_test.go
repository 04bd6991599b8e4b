// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// lease is one of 15 seconds that was renewed for the nth time.
func lease(name, holder string, renewed int, acknowledges ...string) Lease {
	return Lease{Name: name, Holder: holder, Renewed: start.Add(time.Duration(renewed)), Duration: 15 * time.Second, Acknowledges: acknowledges}
}

// seen is a replica a that has observed lists at these seconds.
type seen struct {
	testing.TB
	*Members
}

func (s seen) at(second int, leases ...Lease) time.Time {
	now := start.Add(time.Duration(second) * time.Second)
	s.Observe(leases, now)
	return now
}

func (s seen) wants(now time.Time, active bool, awaited, acknowledged []string) {
	s.Helper()
	if got := s.Active(now); got != active {
		s.Errorf("active: %t, want %t", got, active)
	}
	if got := s.Awaited(); !slices.Equal(got, awaited) {
		s.Errorf("it waits for %v, want %v", got, awaited)
	}
	if got := s.Acknowledged(); !slices.Equal(got, acknowledged) {
		s.Errorf("it acknowledges %v, want %v", got, acknowledged)
	}
}

// One that joins waits until all who were there acknowledge it, and then until it has seen what they have bound.
func TestJoining(t *testing.T) {
	s := seen{t, NewMembers("a", 2*time.Second)}
	s.wants(s.at(0, lease("s-0", "b", 1)), false, []string{"b"}, []string{"b"})
	s.wants(s.at(1, lease("s-0", "b", 2), lease("s-1", "a", 1)), false, []string{"b"}, []string{"b"})
	s.wants(s.at(2, lease("s-0", "b", 3, "a"), lease("s-1", "a", 2)), false, nil, []string{"b"})
	s.wants(start.Add(3999*time.Millisecond), false, nil, []string{"b"})
	s.wants(start.Add(4*time.Second), true, nil, []string{"b"})
	// Who comes later has us on its list.
	s.wants(s.at(5, lease("s-0", "b", 4, "a"), lease("s-1", "a", 3), lease("s-2", "c", 1)), true, nil, []string{"b", "c"})
}

// An acknowledgement of the replica that held the Lease before is none of us.
func TestAcknowledgementIsOfAHolder(t *testing.T) {
	s := seen{t, NewMembers("a2", 0)}
	s.wants(s.at(0, lease("s-0", "b", 1, "a1"), lease("s-1", "a2", 1)), false, []string{"b"}, []string{"b"})
}

// A member is acknowledged when the bindings have ended that began before it was one.
func TestAcknowledgedWhenBindingsHaveEnded(t *testing.T) {
	s := seen{t, NewMembers("a", 0)}
	now := s.at(0, lease("s-0", "a", 1))
	before := s.Begin()
	s.at(1, lease("s-0", "a", 2), lease("s-1", "b", 1))
	after := s.Begin()
	s.wants(now, true, nil, nil)
	s.End(after)
	s.wants(now, true, nil, nil)
	after = s.Begin()
	s.End(before)
	s.wants(now, true, nil, []string{"b"})
	s.End(after)
	s.wants(now, true, nil, []string{"b"})
}

// While a replica leads, one of several places nothing: before it joins, and when that comes to lead later.
func TestNothingIsPlacedBesideALeader(t *testing.T) {
	leads := func(holder string, renewed int) Lease {
		l := lease("s", holder, renewed)
		l.Leads = true
		return l
	}
	s := seen{t, NewMembers("a", 2*time.Second)}
	s.wants(s.at(0, leads("l", 1), lease("s-0", "a", 1)), false, []string{"l"}, nil)
	s.wants(s.at(10, leads("l", 2), lease("s-0", "a", 2)), false, []string{"l"}, nil)
	if !slices.Equal(s.Names(), []string{"s-0"}) {
		t.Errorf("workloads are divided among %v", s.Names())
	}
	// It gives its Lease back.
	s.wants(s.at(11, leads("", 3), lease("s-0", "a", 3)), false, nil, nil)
	s.wants(s.at(13, leads("", 3), lease("s-0", "a", 4)), true, nil, nil)
	// Another comes to lead, and dies.
	s.wants(s.at(14, leads("m", 4), lease("s-0", "a", 5)), false, []string{"m"}, nil)
	s.wants(s.at(28, leads("m", 4), lease("s-0", "a", 6)), false, []string{"m"}, nil)
	s.wants(s.at(29, leads("m", 4), lease("s-0", "a", 7)), false, nil, nil)
	s.wants(s.at(31, leads("m", 4), lease("s-0", "a", 8)), true, nil, nil)
}

// A share is handed on when a Lease runs out or is given back, and not because it is not on the list.
func TestLeaving(t *testing.T) {
	ofB := ""
	for i := 0; ofB == ""; i++ {
		if w := fmt.Sprint("web-", i); Owner(w, []string{"s-0", "s-1"}) == "s-1" {
			ofB = w
		}
	}
	for name, tc := range map[string]struct {
		after func(s seen, second int) time.Time
		want  map[int]bool // by second
	}{
		"it runs out": {func(s seen, second int) time.Time {
			return s.at(second, lease("s-0", "a", second), lease("s-1", "b", 1))
		}, map[int]bool{5: false, 14: false, 15: true}},
		"it is deleted": {func(s seen, second int) time.Time { return s.at(second, lease("s-0", "a", second)) }, map[int]bool{5: false, 14: false, 15: true}},
		"it is given back": {func(s seen, second int) time.Time {
			return s.at(second, lease("s-0", "a", second), Lease{Name: "s-1", Duration: time.Second})
		}, map[int]bool{1: true}},
		"another takes it": {func(s seen, second int) time.Time {
			return s.at(second, lease("s-0", "a", second), lease("s-1", "b2", second))
		}, map[int]bool{5: false, 60: false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen{t, NewMembers("a", 0)}
			s.at(0, lease("s-0", "a", 1), lease("s-1", "b", 1, "a"))
			for second := 1; second <= 60; second++ {
				now := tc.after(s, second)
				if want, asked := tc.want[second]; asked && s.Owns(ofB, now) != want {
					t.Errorf("after %d s it owns the other's share: %t, want %t", second, !want, want)
				}
			}
		})
	}
}
