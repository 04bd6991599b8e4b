// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/rig"
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
			most := time.Duration(times) * 5 * time.Second
			return errorIf(time.Since(begun) < most, "%s are not over", most)
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
			n := of.metric(orders)
			return errorIf(n <= before, "it has been %v times", n)
		})
	}
}

// Who has changed what is counted by the API server's audit log.

// wrote counts what the scheduler and the controller have changed in the story's namespace, by verb and resource: "create pods/binding".
// It is false on a cluster whose audit log is not at hand.
func (s *story) wrote() (changes map[string]int, ok bool) {
	s.Helper()
	if world.auditLog == "" {
		s.Log("this cluster's audit log is not at hand: writes are not counted")
		return nil, false
	}
	writes, err := rig.Writes(world.auditLog)
	s.must(err, "counting writes")
	changes = make(map[string]int)
	for i := range writes {
		w := &writes[i]
		if w.Object.Namespace != s.ns || !w.Done() || !strings.HasPrefix(w.User.Username, "system:serviceaccount:kube-system:espalier") {
			continue
		}
		what := w.Verb + " " + w.Object.Resource
		if w.Object.Subresource != "" {
			what += "/" + w.Object.Subresource
		}
		changes[what]++
	}
	s.Logf("the scheduler and the controller have made these changes: %v", changes)
	return changes, true
}

// wroteToPods fails the story unless the scheduler and the controller have bound its pods, and changed them in these ways besides. Why a pod
// waits, which any scheduler writes into its status, does not count.
func (s *story) wroteToPods(want map[string]int) {
	s.Helper()
	changes, ok := s.wrote()
	if !ok {
		return
	}
	bindings := changes["create pods/binding"]
	maps.DeleteFunc(changes, func(what string, _ int) bool {
		return !strings.Contains(what, " pods") || what == "create pods/binding" || what == "patch pods/status"
	})
	if bindings == 0 || !maps.Equal(changes, want) {
		s.Errorf("there are %d bindings, and other changes of pods: %v, want %v", bindings, changes, want)
	}
}

// wroteNoPods fails the story if the scheduler or the controller have changed one of its pods but by binding it.
func (s *story) wroteNoPods() {
	s.Helper()
	s.wroteToPods(map[string]int{})
}

// wroteNoReplicas fails the story if anybody has changed what is wanted of a Deployment since it was made, such as its number of replicas.
func (s *story) wroteNoReplicas(app string) {
	s.Helper()
	if n := s.generation(app); n != 1 {
		s.Errorf("the Deployment has been changed %d times", n-1)
	}
}

// generation counts what was wanted of a Deployment so far.
func (s *story) generation(app string) int64 {
	s.Helper()
	d := get[appsv1.Deployment](s, app)
	return d.Generation
}
