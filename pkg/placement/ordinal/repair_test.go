// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ordinal

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRepair(t *testing.T) {
	for _, tc := range []struct{ numbers, want []int32 }{
		{nil, nil},
		{[]int32{1, 2, 3}, []int32{1, 2, 3}},
		{[]int32{0, 0, 0}, []int32{1, 2, 3}}, // from before there were any
		{[]int32{1, 2, 5}, []int32{1, 2, 3}},
		{[]int32{4, 2, 1, 9}, []int32{4, 2, 1, 3}},
		{[]int32{1, 0, 1, 2}, []int32{1, 3, 4, 2}},
	} {
		if got := Repair(tc.numbers); !slices.Equal(got, tc.want) {
			t.Errorf("%v becomes %v, want %v", tc.numbers, got, tc.want)
		}
	}
}

// None is missing and none is there twice, as few as can be change, and what is right stays.
func TestRepairChangesAsFewAsCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int32Range(0, 12), 0, 10).Draw(t, "numbers")
		got := Repair(numbers)
		right := make(map[int32]bool)
		changed := 0
		for i, n := range numbers {
			if n >= 1 && int(n) <= len(numbers) {
				right[n] = true
			}
			if got[i] != n {
				changed++
			}
		}
		if changed != len(numbers)-len(right) {
			t.Fatalf("%v becomes %v: %d have changed, and %d must", numbers, got, changed, len(numbers)-len(right))
		}
		sorted := slices.Sorted(slices.Values(got))
		for i, n := range sorted {
			if int(n) != i+1 {
				t.Fatalf("%v becomes %v", numbers, got)
			}
		}
		if again := Repair(got); !slices.Equal(again, got) {
			t.Fatalf("%v becomes %v the second time", got, again)
		}
	})
}

// Branches lose pods while they can take none, and so have holes. After a repair what is left of any scale-down is what is left if the
// highest branch gives one pod at a time; and there are no more repairs than pods were lost.
func TestHistoriesEndEven(t *testing.T) {
	repairs := 0
	rapid.Check(t, func(t *rapid.T) {
		branches := make([]branch, rapid.IntRange(2, 4).Draw(t, "branches"))
		repaired, lost := 0, 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				fill(branches, rapid.IntRange(1, 20).Draw(t, "up"))
			case 1:
				b := rapid.IntRange(0, len(branches)-1).Draw(t, "branch")
				lost += lose(t, branches, b)
			case 2: // a rollout: all pods are new ones
				pods := 0
				for i := range branches {
					pods += len(branches[i].pods)
					branches[i] = branch{}
				}
				fill(branches, pods)
			default:
				for i := range branches {
					repaired += repair(&branches[i])
				}
				before := sizes(branches)
				down := rapid.IntRange(0, before[0]+before[len(before)-1]).Draw(t, "down")
				remove(t, branches, down)
				for range down {
					slices.Sort(before)
					before[len(before)-1] = max(0, before[len(before)-1]-1)
				}
				slices.Sort(before)
				if left := sizes(branches); !slices.Equal(left, before) {
					t.Fatalf("%d were removed, and %v are left, want %v", down, left, before)
				}
			}
		}
		if repaired > lost {
			t.Fatalf("%d repairs for %d pods that were lost", repaired, lost)
		}
		repairs += repaired
	})
	if repairs == 0 {
		t.Error("nothing was ever repaired")
	}
}

// lose takes pods of a branch away, and places as many in the others.
func lose(t *rapid.T, branches []branch, at int) int {
	b := &branches[at]
	lost := min(len(b.pods), rapid.IntRange(1, 3).Draw(t, "lost"))
	for range lost {
		i := rapid.IntRange(0, len(b.pods)-1).Draw(t, "pod")
		b.set.Remove(b.pods[i].N)
		b.pods = slices.Delete(b.pods, i, i+1)
	}
	others := slices.Concat(branches[:at], branches[at+1:])
	fill(others, lost)
	copy(branches, others[:at])
	copy(branches[at+1:], others[at:])
	return lost
}

// repair gives the pods of a branch the numbers that they should have, and returns how many got another one.
func repair(b *branch) (changed int) {
	var numbers []int32
	for _, o := range b.pods {
		numbers = append(numbers, o.N)
	}
	b.set = Set{}
	for i, n := range Repair(numbers) {
		if b.pods[i].N != n {
			b.pods[i].N = n
			changed++
		}
		b.set.Add(n)
	}
	return changed
}

// sizes are the numbers of pods, the least first.
func sizes(branches []branch) (sizes []int) {
	for i := range branches {
		sizes = append(sizes, len(branches[i].pods))
	}
	slices.Sort(sizes)
	return sizes
}
