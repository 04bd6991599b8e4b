// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

// The vectors are of one resource unless they say otherwise.
func amount(n int64) allocation.Vector { return allocation.Vector{n} }

// pods are of one priority and pending, in the order of their arrival: NAME1 with the first demand, and so on.
func pods(name string, priority int, demands ...int64) []allocation.Pod {
	var all []allocation.Pod
	for i, demand := range demands {
		all = append(all, allocation.Pod{Key: fmt.Sprint(name, i+1), Demand: amount(demand), Priority: priority, Arrival: int64(i)})
	}
	return all
}

func leaf(name string, reserved int64, its ...allocation.Pod) *allocation.Allocation {
	return &allocation.Allocation{Name: name, Reserved: amount(reserved), Rank: allocation.DefaultRank, Pods: its}
}

func root(children ...*allocation.Allocation) *allocation.Allocation {
	return &allocation.Allocation{Rank: allocation.DefaultRank, Children: children}
}

func order(of *allocation.Allocation, size int64) []allocation.Entry {
	return allocation.Order(of, amount(size), allocation.Options{})
}

func keys(entries []allocation.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Pod.Key)
	}
	return strings.Join(all, " ")
}

// wantOrder wants these pods in this order.
func wantOrder(t *testing.T, entries []allocation.Entry, want string) {
	t.Helper()
	if got := keys(entries); got != want {
		t.Errorf("the order is %s, want %s", got, want)
	}
}

// wantUtilization wants these utilizations before each pod, and after the last.
func wantUtilization(t *testing.T, entries []allocation.Entry, want ...float64) {
	t.Helper()
	for i, e := range entries {
		if math.Abs(e.Before-want[i]) > 1e-4 || math.Abs(e.After-want[i+1]) > 1e-4 {
			t.Errorf("%s has %.4f and %.4f, want %.4f and %.4f", e.Pod.Key, e.Before, e.After, want[i], want[i+1])
		}
	}
}

func wantRanks(t *testing.T, entries []allocation.Entry, want ...int) {
	t.Helper()
	var got []int
	for _, e := range entries {
		got = append(got, e.Rank)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the ranks are %v, want %v", got, want)
	}
}

func wantClasses(t *testing.T, entries []allocation.Entry, want ...allocation.Class) {
	t.Helper()
	for i, e := range entries {
		if e.Class != want[i] {
			t.Errorf("%s is of class %d, want %d", e.Pod.Key, e.Class, want[i])
		}
	}
}

func TestVector_TV1_OneAllocation(t *testing.T) {
	a := leaf("a", 10, pods("p", 5, 1, 2, 3)...)
	got := order(a, 20)
	wantOrder(t, got, "p1 p2 p3")
	wantUtilization(t, got, -10./30, -9./30, -7./30, -4./30)
	for i, priority := range []int{10, 50, 100} {
		a.Pods[i].Priority = priority
	}
	got = order(a, 20)
	wantOrder(t, got, "p3 p2 p1")
	wantUtilization(t, got, -10./30, -7./30, -5./30, -4./30)
}

func TestVector_TV2_PlacedFirst(t *testing.T) {
	a := leaf("a", 10, pods("p", 5, 1, 1)...)
	wantOrder(t, order(a, 20), "p1 p2")
	a.Pods[1].Placed = true
	wantOrder(t, order(a, 20), "p2 p1")
}

func TestVector_TV3_RankAdjustment(t *testing.T) {
	a := leaf("a", 3, pods("p", 5, 1, 2, 3)...)
	a.Adjustment = 10
	got := order(a, 20)
	wantRanks(t, got, 90, 90, 100)
	for i, reserved := range []bool{true, true, false} {
		if got[i].Reserved != reserved {
			t.Errorf("%s is reserved: %t", got[i].Pod.Key, got[i].Reserved)
		}
	}
}

// The pod that crosses the bound of the reservation is within it.
func TestVector_TV3_Crossing(t *testing.T) {
	a := leaf("a", 3, pods("p", 5, 2, 2, 1)...)
	a.Adjustment = 10
	wantRanks(t, order(a, 20), 90, 90, 100)
}

func TestVector_TV4_PriorityZero(t *testing.T) {
	a := leaf("a", 3, append(pods("p", 1, 1), pods("z", 0, 2)...)...)
	got := order(a, 20)
	wantRanks(t, got, 100, 100)
	wantClasses(t, got, allocation.Ordinary, allocation.Last)
	if !math.IsInf(got[1].Before, 1) || !math.IsInf(got[1].After, 1) {
		t.Errorf("the utilization of priority 0 is %v and %v", got[1].Before, got[1].After)
	}
	a.MaxUtilization = 100
	wantClasses(t, order(a, 20), allocation.Ordinary, allocation.Capped)
}

func TestVector_TV5_NoReservation(t *testing.T) {
	wantUtilization(t, order(leaf("a", 0, pods("p", 5, 1)...), 10), 0, 0.1)
}

func TestVector_TV6_PoorAndRich(t *testing.T) {
	got := order(root(leaf("poor", 0, pods("p", 1, 1)...), leaf("rich", 5, pods("r", 1, 5, 5)...)), 20)
	wantOrder(t, got, "r1 p1 r2")
	wantUtilization(t, got, -0.2, 0, 0.04, 0.24)
}

func TestVector_TV7_TwoChildren(t *testing.T) {
	child := func(name string, reserved int64) *allocation.Allocation {
		a := leaf(name, reserved)
		for i, demand := range []int64{2, 3, 5} {
			a.Pods = append(a.Pods, allocation.Pod{Key: fmt.Sprint(i+1, name), Demand: amount(demand), Priority: 3 - i})
		}
		return a
	}
	top := root(child("a", 5), child("b", 10))
	top.Reserved = amount(3)
	got := order(top, 20)
	wantOrder(t, got, "1b 2b 1a 3b 2a 3a")
	if after := got[0].After; math.Abs(after-(2-18.)/38) > 1e-4 {
		t.Errorf("1b has %v after it", after)
	}

	only := root(child("a", 5))
	only.Reserved = amount(3)
	if got := order(only, 20); got[0].Pod.Key != "1a" || math.Abs(got[0].After-(2-8.)/28) > 1e-4 {
		t.Errorf("the first is %s with %v after it", got[0].Pod.Key, got[0].After)
	}

	for _, a := range append(top.Children, top) {
		a.Pods = append(a.Pods, allocation.Pod{Key: "z" + a.Name, Demand: amount(1)})
	}
	got = order(top, 20)
	wantOrder(t, got, "1b 2b 1a 3b 2a 3a z za zb")
	wantClasses(t, got[6:], allocation.Last, allocation.Last, allocation.Last)
}

// environments are those of the recommended setup: four allocations, three pods each of half of what they reserve, which arrive one
// environment after the other.
func environments() *allocation.Allocation {
	top := root()
	for i, name := range []string{"prod", "uat", "qa", "dev"} {
		a := leaf(name, 4, pods(name, 1, 2, 2, 2)...)
		a.Adjustment = 3 - i
		for p := range a.Pods {
			a.Pods[p].Arrival += int64(10 * i)
		}
		top.Children = append(top.Children, a)
	}
	return top
}

func TestVector_TV8_Environments(t *testing.T) {
	got := order(environments(), 40)
	wantOrder(t, got, "prod1 prod2 uat1 uat2 qa1 qa2 dev1 dev2 prod3 uat3 qa3 dev3")
	wantRanks(t, got, 97, 97, 98, 98, 99, 99, 100, 100, 100, 100, 100, 100)
	wantUtilization(t, got[6:], -4./56, -2./56, 0, 2./56, 4./56, 6./56, 8./56)
}

func TestVector_TV9_SiblingFirst(t *testing.T) {
	t1 := root(leaf("prod", 6, pods("t1prod", 1, 2)...), leaf("test", 2, pods("t1test", 1, 2, 2, 2, 2)...))
	t1.Name = "t1"
	t2 := root(leaf("x", 8, pods("t2x", 1, 2, 2, 2, 2, 2, 2)...))
	t2.Name = "t2"
	wantOrder(t, order(root(t1, t2), 16), "t1prod1 t2x1 t1test1 t2x2 t1test2 t2x3 t1test3 t2x4 t1test4 t2x5 t2x6")
}

// Within the reservation the resource counts of which most is available.
func TestVector_TV10_SeveralResources(t *testing.T) {
	one := allocation.Vector{1, 1, 1}
	a := &allocation.Allocation{Name: "a", Pods: []allocation.Pod{{Key: "p1", Demand: one, Priority: 1}, {Key: "p2", Demand: one, Priority: 1, Arrival: 1}}}
	sibling := &allocation.Allocation{Name: "sibling", Reserved: allocation.Vector{10, 10, 10}}
	got := allocation.Order(root(a, sibling), allocation.Vector{20, 40, 60}, allocation.Options{})
	wantUtilization(t, got, -0.142857, -0.128571, -0.114286)
}

func TestVector_TV11_MaxUtilization(t *testing.T) {
	a := leaf("a", 6)
	for i := range int64(4) {
		a.Pods = append(a.Pods, allocation.Pod{Key: fmt.Sprint("p", i+1), Demand: amount(i + 1), Priority: int(4 - i)})
	}
	a.MaxUtilization = 1
	got := order(a, 20)
	wantOrder(t, got, "p1 p2 p3 p4")
	wantClasses(t, got, allocation.Ordinary, allocation.Ordinary, allocation.Ordinary, allocation.Capped)
	a.Pods[3].Priority = 5
	got = order(a, 20)
	wantOrder(t, got, "p4 p1 p2 p3")
	wantClasses(t, got, allocation.Ordinary, allocation.Ordinary, allocation.Capped, allocation.Capped)
	// Those that run are stopped when the fourth has its place, which it may never have. Until then they keep their own.
	for i, want := range []string{"", "", "", "p2 p3"} {
		a.Pods[i].Placed = true
		var exceed []string
		for _, e := range order(a, 20) {
			if e.Exceeds() {
				exceed = append(exceed, e.Pod.Key)
			} else if e.Pod.Placed && e.Class != allocation.Ordinary {
				t.Errorf("with %d placed %s is of class %d", i+1, e.Pod.Key, e.Class)
			}
		}
		if is := strings.Join(exceed, " "); is != want {
			t.Errorf("with %d placed %q must not run, want %q", i+1, is, want)
		}
	}
}

// A pod that alone is beyond the maximum never runs. Those that do come where they were without it, and before others that are beyond their
// reservation.
func TestVector_TV11_APodBeyondTheMaximumMovesNobody(t *testing.T) {
	a, other := leaf("a", 6, pods("p", 1, 2, 2)...), leaf("other", 0, pods("q", 1, 1)...)
	a.MaxUtilization = 1
	a.Pods[0].Placed, a.Pods[1].Placed = true, true
	wantOrder(t, order(root(a, other), 20), "p1 p2 q1")
	a.Pods = append(a.Pods, allocation.Pod{Key: "never", Demand: amount(7), Priority: 100})
	got := order(root(a, other), 20)
	wantOrder(t, got, "p1 p2 q1 never")
	wantUtilization(t, got, -6./26, -4./26, -2./26, -1./26, 6./26)
	wantClasses(t, got, allocation.Ordinary, allocation.Ordinary, allocation.Ordinary, allocation.Capped)
}

// TV23: of a group as many may be tried as there are identities left, by priority. Those that stand by use up neither the reservation nor the
// maximum: 10 are reserved, of which three of the group and all five others are.
func TestVector_TV23_StandBysUseUpNothing(t *testing.T) {
	a := leaf("a", 10, pods("web", 1, 1, 1, 1, 1, 1)...)
	shards := &allocation.Group{Free: 2}
	for _, p := range pods("s", 50, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) {
		p.Group, p.Placed = shards, p.Key == "s1"
		a.Pods = append(a.Pods, p)
	}
	for _, a.MaxUtilization = range []float64{0, 1} {
		got := order(a, 20)
		wantOrder(t, got, "s1 s2 s3 web1 web2 web3 web4 web5 s4 s5 s6 s7 s8 s9 s10")
		for i, e := range got {
			if want := i < 8; e.Reserved != want || want != (e.Class == allocation.Ordinary) || !want != (e.Class == allocation.StandsBy) {
				t.Errorf("%s is of class %d, and reserved: %t", e.Pod.Key, e.Class, e.Reserved)
			}
		}
	}
	shards.Free = -1 // the group has become smaller
	wantOrder(t, order(a, 20), "s1 web1 web2 web3 web4 web5 s2 s3 s4 s5 s6 s7 s8 s9 s10")
}

// Choice T-b: a pod keeps the rank that it has in its allocation, unless each level is to give it another.
func TestChoice_Tb_RankPerLevel(t *testing.T) {
	team := func(name string, rank int, its *allocation.Allocation) *allocation.Allocation {
		a := root(its)
		a.Name, a.Rank = name, rank
		return a
	}
	first, second := leaf("x", 2, pods("f", 1, 2)...), leaf("x", 2, pods("s", 1, 2)...)
	second.Adjustment = 3
	top := root(team("first", 50, first), team("second", 100, second))
	wantOrder(t, order(top, 10), "s1 f1")
	wantOrder(t, allocation.Order(top, amount(10), allocation.Options{RankPerLevel: true}), "f1 s1")
}

// Choice T-c: a pod of priority 0 comes after all others, also after those of a higher rank.
func TestChoice_Tc_PriorityZeroIsLastOfAll(t *testing.T) {
	important, other := leaf("important", 4, pods("z", 0, 1)...), leaf("other", 0, pods("p", 1, 1)...)
	other.Rank = 200
	wantOrder(t, order(root(important, other), 10), "p1 z1")
}
