// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ordinal

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "1000"})
	m.Run()
}

func TestCostAndSpelling(t *testing.T) {
	for _, tc := range []struct {
		o    Ordinal
		text string
		cost int32
	}{
		{Ordinal{N: 1}, "1", -1},
		{Ordinal{N: Max}, "1000000", -Max},
		{Ordinal{1, Share{70, 100}}, "1@70/100", -715},
		{Ordinal{3, Share{70, 100}}, "3@70/100", -3572},
		{Ordinal{1, Share{30, 100}}, "1@30/100", -1667},
		{Ordinal{2, Share{0, 1}}, "2@0/1", lowestCost - 2},
		{Ordinal{Max, Share{1, 256 * level.MaxShare}}, "1000000@1/256000000", lowestCost},
	} {
		if tc.o.String() != tc.text || tc.o.Cost() != tc.cost {
			t.Errorf("%v: %q and %d, want %q and %d", tc.o, tc.o, tc.o.Cost(), tc.text, tc.cost)
		}
		if o, err := Parse(tc.text); err != nil || o != tc.o {
			t.Errorf("%q is read as %v, %v", tc.text, o, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "+1", "01", " 1", "1.0", "1000001", "99999999999999999999", "1@", "1@/", "1@0/0", "1@70", "1@70/30", "1@-1/3", "1@1/9999999999", "1@1/2/3"} {
		if o, err := Parse(text); err == nil {
			t.Errorf("%q is read as %v", text, o)
		}
	}
}

// branch is one of some branches that are filled, as the tree fills them.
type branch struct {
	share Share
	set   Set
	pods  []Ordinal
}

// next is (2 * count + 1) / share.
func (b *branch) next() float64 {
	if b.share == (Share{}) {
		return float64(2*len(b.pods) + 1)
	}
	if b.share.Of == 0 {
		return math.Inf(1)
	}
	return float64(2*len(b.pods)+1) / float64(b.share.Of)
}

func fill(branches []branch, pods int) {
	for range pods {
		lowest := 0
		for i := range branches {
			if branches[i].next() < branches[lowest].next() {
				lowest = i
			}
		}
		b := &branches[lowest]
		o := Ordinal{b.set.Lowest(), b.share}
		b.set.Add(o.N)
		b.pods = append(b.pods, o)
	}
}

// remove takes away the cheapest pods of all branches, in any order among those that cost the same.
func remove(t *rapid.T, branches []branch, pods int) {
	type victim struct {
		branch, cost int
		o            Ordinal
	}
	var all []victim
	for i := range branches {
		for _, o := range branches[i].pods {
			all = append(all, victim{i, int(o.Cost()), o})
		}
		branches[i].pods = nil
	}
	all = rapid.Permutation(all).Draw(t, "order")
	slices.SortStableFunc(all, func(a, b victim) int { return cmp.Compare(a.cost, b.cost) })
	for i, v := range all {
		if b := &branches[v.branch]; i < pods {
			b.set.Remove(v.o.N)
		} else {
			b.pods = append(b.pods, v.o)
		}
	}
}

// However pods come and go by cost, branches are as they would be if they were filled with as many: no branch could give
// one away and the other be nearer to its share.
func TestScaleUpAndDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(1, 100), 1, 5).Draw(t, "weights")
		equal, sum := rapid.Bool().Draw(t, "equal"), int64(0)
		for _, w := range weights {
			sum += w
		}
		branches := make([]branch, len(weights))
		for i, w := range weights {
			if !equal {
				branches[i].share = Share{w, sum}
			}
		}
		pods := 0
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			if target := rapid.IntRange(0, 200).Draw(t, "pods"); target > pods {
				fill(branches, target-pods)
				pods = target
			} else {
				remove(t, branches, pods-target)
				pods = target
			}
			for i := range branches {
				for j := range branches {
					last := branches[i]
					if len(last.pods) == 0 {
						continue
					}
					last.pods = last.pods[1:]
					// Costs are whole numbers: of two that are nearer than one part in 500 either may go.
					if last.next() > branches[j].next()*(1+1.0/500) {
						t.Fatalf("with %d pods, branch %d has %d for %v and branch %d %d for %v", pods, i, len(branches[i].pods), branches[i].share, j, len(branches[j].pods), branches[j].share)
					}
				}
			}
		}
	})
}

// A number is free when the last pod that has it is gone.
func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		pods := make(map[int32]int)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			n := rapid.Int32Range(1, 6).Draw(t, "n")
			if pods[n] > 0 && rapid.Bool().Draw(t, "remove") {
				pods[n]--
				s.Remove(n)
			} else {
				pods[n]++
				s.Add(n)
			}
			lowest := int32(1)
			for pods[lowest] > 0 {
				lowest++
			}
			if got := s.Lowest(); got != lowest {
				t.Fatalf("the lowest free is %d, want %d of %v", got, lowest, pods)
			}
		}
		for n, count := range pods {
			for range count {
				s.Remove(n)
			}
		}
		if !s.Empty() || s.Lowest() != 1 {
			t.Fatalf("it is not empty: %v", s)
		}
	})
}

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
