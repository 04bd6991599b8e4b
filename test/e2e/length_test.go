// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A story that waits, or repeats what depends on chance, has two lengths: the one that its scenario says, with -whole, and one that shows
// the same in seconds.

// times is how often a story repeats what depends on chance.
func times(n int) int {
	if *wholeFlag {
		return n
	}
	return min(n, 2)
}

// lasting is how long a story lets something last.
func lasting(whole, short time.Duration) time.Duration { return sized(whole, short) }

// sized is how large a story is.
func sized[T any](whole, short T) T {
	if *wholeFlag {
		return whole
	}
	return short
}

// looks are how often controllers have looked, by their name.
func (s *story) looks() map[string]float64 {
	s.Helper()
	return (&metered{story: s, url: world.controllerMetrics}).by("espalier_syncs_total", "controller")
}

// looked waits until controllers have looked so often, from begin to end, and fails the story as soon as the check does. The first look that ends
// may have begun before. Where the cluster runs the controller nobody sees it look, and it is given the time.
func (s *story) looked(times int, controllers []string, check func() error) {
	s.Helper()
	begun, before := time.Now(), map[string]float64(nil)
	if world.controllerMetrics != "" {
		before = s.looks()
	}
	s.until(fmt.Sprintf("%d looks of %q", times, controllers), func() error {
		if err := check(); err != nil {
			s.Fatal(err)
		}
		if before == nil {
			if most := time.Duration(times) * 5 * time.Second; time.Since(begun) < most {
				return fmt.Errorf("%s are not over", most)
			}
			return nil
		}
		now := s.looks()
		for _, c := range controllers {
			if n := now[c] - before[c]; n <= float64(times) {
				return fmt.Errorf("%s has looked %v times", c, n)
			}
		}
		return nil
	})
}

// movers are the controllers that make Moves. What they wait for in these stories is over at their third look: they look every two seconds.
var movers = []string{"disconnect", "drain", "lease", "rebalance", "restart"}

// still fails the story unless there are so many Moves, and if another one is made when all who make Moves look again, or, told at its whole length, in ten minutes.
func (s *story) still(want int) {
	s.Helper()
	s.stillFor(want, 10*time.Minute)
}

// stillFor is still for another time.
func (s *story) stillFor(want int, whole time.Duration) {
	s.Helper()
	made := make(map[types.UID]bool) // those that have ended are deleted after a while
	for _, m := range s.moves() {
		made[m.UID] = true
	}
	if len(made) != want {
		s.Fatalf("there are %d Moves, want %d: %v", len(made), want, s.moves())
	}
	begun := time.Now()
	none := func() error {
		for _, m := range s.moves() {
			if !made[m.UID] {
				return fmt.Errorf("there is another Move after %s: %v", time.Since(begun).Round(time.Second), m)
			}
		}
		return nil
	}
	s.looked(3, movers, none)
	for said := begun; *wholeFlag && time.Since(begun) < whole; time.Sleep(time.Second) {
		s.must(none(), "waiting for nothing")
		if time.Since(said) > time.Minute {
			said = time.Now()
			s.Logf("%s: nothing has been moved for %s of %s", s.Name(), time.Since(begun).Round(time.Second), whole)
		}
	}
}

// ordered has the scheduler of tenants compute its order anew so often, from begin to end, and try all pods that wait.
func (s *story) ordered(times int) {
	s.Helper()
	of := &metered{story: s, url: world.tenantsMetrics}
	const orders = "espalier_allocation_order_duration_seconds_count"
	for range times + 1 { // one may have begun before
		before := of.metric(orders)
		s.label(fmt.Sprint("e2e.espalier.dev/again-", s.serial())) // a namespace with other labels may be another tenant's
		s.until("the order to be computed", func() error {
			if n := of.metric(orders); n <= before {
				return fmt.Errorf("it has been %v times", n)
			}
			return nil
		})
	}
}
