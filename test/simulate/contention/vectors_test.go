// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"errors"
	"slices"
	"testing"
)

// Vector VV5: of a node of 4000m and 8 GiB, 2000m and 6 GiB are free.
func TestVector_VV5(t *testing.T) {
	for _, tc := range []struct {
		cpu, memory int64 // free
		least, most int64
	}{{2000, 6, 63, 37}, {4000, 8, 100, 0}, {0, 0, 0, 100}} {
		node := []Amount{{4000, tc.cpu}, {8, tc.memory}}
		if least, most := LeastAllocated(node...), MostAllocated(node...); least != tc.least || most != tc.most {
			t.Errorf("with %dm and %d free: least %d, most %d; want %d, %d", tc.cpu, tc.memory, least, most, tc.least, tc.most)
		}
	}
}

// Vector VV6: one plugin has scored a node 80 where it was sampled, and another one 40 where it was decided about.
func TestVector_VV6(t *testing.T) {
	if got := Combine(80, 1, 40); got != 60 {
		t.Errorf("got %d, want 60", got)
	}
	if got := Combine(0, 0); got != 0 {
		t.Errorf("without plugins it is %d", got)
	}
}

func binds() error { return nil }

// Vector VV9: pods are committed to a node of 1000m together. What is reserved is not free, whether it fits or not.
func TestVector_VV9(t *testing.T) {
	for name, tc := range map[string]struct {
		pods              []int64
		reserved, in, end int64 // free when all are reserved, how many fit, and what is free then
	}{
		"two of 600m":   {[]int64{600, 600}, -200, 1, 400},
		"three of 400m": {[]int64{400, 400, 400}, -200, 2, 200},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAgent([]int64{1000})
			for _, request := range tc.pods {
				a.Reserve(0, request, 0)
			}
			if got := a.Available(0); got != tc.reserved {
				t.Errorf("%dm are free when all are reserved, want %d", got, tc.reserved)
			}
			for i, request := range tc.pods {
				err := a.Commit(0, request, binds)
				if fits := int64(i) < tc.in; fits != (err == nil) || !fits && !errors.Is(err, ErrConflict) {
					t.Errorf("pod %d: %v", i, err)
				}
			}
			if got := a.Available(0); got != tc.end {
				t.Errorf("%dm are free in the end, want %d", got, tc.end)
			}
		})
	}
}

// Vector VV10: a binding that fails leaves nothing reserved, and the pod goes to its next candidate.
func TestVector_VV10(t *testing.T) {
	a := NewAgent([]int64{1000, 1000})
	for node, bind := range []func() error{func() error { return errBind }, binds} {
		a.Reserve(node, 600, 0)
		if err := a.Commit(node, 600, bind); (err == nil) != (node == 1) {
			t.Errorf("node %d: %v", node, err)
		}
	}
	if got := []int64{a.Available(0), a.Available(1)}; !slices.Equal(got, []int64{1000, 400}) {
		t.Errorf("%v are free, want 1000 and 400", got)
	}
	r, err := Run(Config{Nodes: 50, Fill: 0.5, Pods: 100, Candidates: 3, Failures: 0.5, Attempts: 100})
	if err != nil || r.Bound != 100 || r.Refused < 50 || r.Conflicts >= r.Refused/3+1 {
		t.Errorf("with half of all bindings failing: %+v, %v", r, err)
	}
}

// Vector VV12: pods have come to nodes 100, 10 and 50 ago.
func TestVector_VV12(t *testing.T) {
	if got := LeastRecentlyUsed(1000, []int64{900, 990, 950}); !slices.Equal(got, []int64{100, 10, 50}) {
		t.Errorf("got %v, want 100, 10, 50", got)
	}
	if got := LeastRecentlyUsed(0, []int64{0, 0}); !slices.Equal(got, []int64{0, 0}) {
		t.Errorf("at the beginning: %v", got)
	}
}
