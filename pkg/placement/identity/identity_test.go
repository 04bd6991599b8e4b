// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"maps"
	"slices"
	"testing"
)

// free lists the identities that are free.
func free(size int, held Set) (ids []int) {
	for {
		id, ok := Lowest(size, held)
		if !ok {
			return ids
		}
		ids = append(ids, id)
		held = copyWith(held, id)
	}
}

func copyWith(held Set, id int) Set {
	with := Set{id: true}
	maps.Copy(with, held)
	return with
}

func TestVector_TV23_LowestFirst(t *testing.T) {
	held := Set{}
	for want := range 3 {
		id, ok := Lowest(3, held)
		if id != want || !ok {
			t.Fatalf("got %d, %t, want %d", id, ok, want)
		}
		held[id] = true
	}
	if id, ok := Lowest(3, held); ok {
		t.Errorf("a fourth one got %d", id)
	}
	delete(held, 1)
	if id, ok := Lowest(3, held); id != 1 || !ok {
		t.Errorf("of what was given back got %d, %t", id, ok)
	}
}

func TestVector_TV23_Resize(t *testing.T) {
	held := Set{0: true, 2: true, 4: true}
	for size, want := range map[int][]int{5: {1, 3}, 7: {1, 3, 5, 6}, 3: {1}, 0: nil} {
		if got := free(size, held); !slices.Equal(got, want) || Free(size, held) != len(want) {
			t.Errorf("of %d are free %v, in number %d, want %v", size, got, Free(size, held), want)
		}
		for id := range held {
			if Valid(size, id) != (id < size) {
				t.Errorf("a group of %d has the identity %d: %t", size, id, Valid(size, id))
			}
		}
	}
}

// Ten pods take the identities of a group of three, then of five, then of three again.
func TestVector_TV23_StandBy(t *testing.T) {
	holds := make([]int, 10)
	for pod := range holds {
		holds[pod] = -1
	}
	settle := func(size int) (placed []int) {
		held := Set{}
		for pod, id := range holds {
			if !Valid(size, id) {
				holds[pod] = -1
			} else {
				held[id] = true
			}
		}
		for pod := range holds {
			if holds[pod] < 0 {
				if id, ok := Lowest(size, held); ok {
					holds[pod], held[id] = id, true
				}
			}
			if holds[pod] >= 0 {
				placed = append(placed, pod)
			}
		}
		return placed
	}
	want := func(when string, got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s run %v, want %v", when, got, want)
		}
	}
	want("of three", settle(3), 0, 1, 2)
	holds = slices.Delete(holds, 2, 3)
	want("with the third gone", settle(3), 0, 1, 2)
	if holds[2] != 2 {
		t.Errorf("the one that took its place has %d", holds[2])
	}
	want("of five", settle(5), 0, 1, 2, 3, 4)
	want("of three again", settle(3), 0, 1, 2)
	want("of none", settle(0))
}
