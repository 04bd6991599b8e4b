// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package idlecache_test

import (
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/idlecache"
)

// rig is a cache of numbers that tells what it evicts.
type rig struct {
	*idlecache.Cache[string, int]
	evicted []int
}

func newRig(most int) *rig {
	r := &rig{}
	r.Cache = idlecache.New[string](most, func(v int) { r.evicted = append(r.evicted, v) })
	return r
}

func (r *rig) has(t *testing.T, want ...int) {
	t.Helper()
	if got := slices.Sorted(r.Values()); !slices.Equal(got, want) || r.Len() != len(want) {
		t.Errorf("it has %d, of length %d, want %d", got, r.Len(), want)
	}
}

func TestTooMany(t *testing.T) {
	r := newRig(2)
	r.Put("a", 1)
	r.Put("b", 2)
	if v, ok := r.Get("a"); !ok || v != 1 {
		t.Errorf("got %d, %t", v, ok)
	}
	if v, ok := r.Peek("b"); !ok || v != 2 {
		t.Errorf("got %d, %t", v, ok)
	}
	r.Put("c", 3) // b was looked at, and not used
	r.has(t, 1, 3)
	if v, ok := r.Get("b"); ok || v != 0 || !slices.Equal(r.evicted, []int{2}) {
		t.Errorf("got %d, %t, and %d are evicted", v, ok, r.evicted)
	}
	r.Put("c", 4)
	r.has(t, 1, 4)
	if !slices.Equal(r.evicted, []int{2, 3}) {
		t.Errorf("%d are evicted, want the one that was replaced as well", r.evicted)
	}
}

func TestIdle(t *testing.T) {
	r := newRig(10)
	for v, key := range []string{"a", "b", "c"} {
		r.Put(key, v)
	}
	if left := r.EvictIdle(); left != 3 {
		t.Errorf("%d are left of three that have just come", left)
	}
	r.Get("b")
	r.Peek("c")
	if left := r.EvictIdle(); left != 1 {
		t.Errorf("%d are left, want the one that was used", left)
	}
	r.has(t, 1)
	if left := r.EvictIdle(); left != 0 {
		t.Errorf("%d are left of what nobody uses", left)
	}
}
