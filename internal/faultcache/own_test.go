// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import "testing"

// An error is said to be the workload's own when it has become so, and once.
func TestOwnErrorsAreSaidOnce(t *testing.T) {
	r := newRig(t, options())
	look := func(want int) []ownError {
		t.Helper()
		fresh := r.lookAtOwnErrors()
		if len(fresh) != want {
			t.Errorf("%v are new, want %d", fresh, want)
		}
		return fresh
	}
	r.reject("web", "n1", 1)
	look(0)
	r.reject("web", "n2", 1)
	for _, e := range look(1) {
		if e.kind != "OutOfcpu" || e.onNodes != 2 || e.ofNodes != 2 {
			t.Errorf("it is %+v", e)
		}
	}
	r.reject("web", "n2", 3)
	look(0)
}
