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
