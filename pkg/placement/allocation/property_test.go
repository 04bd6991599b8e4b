// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "500"})
	m.Run()
}

const resources = 2

func drawVector(t *rapid.T, label string, least, most int64) allocation.Vector {
	return rapid.SliceOfN(rapid.Int64Range(least, most), resources, resources).Draw(t, label)
}

// drawTree draws an allocation with some below it, and at most so many pods in all. Pods request at least so much.
func drawTree(t *rapid.T, name string, depth int, left *int, least int64) *allocation.Allocation {
	a := &allocation.Allocation{
		Name: name, Reserved: drawVector(t, "reserved", 0, 6), Rank: rapid.SampledFrom([]int{100, 100, 100, 90}).Draw(t, "rank"),
		Adjustment: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "adjustment"), MaxUtilization: rapid.SampledFrom([]float64{0, 0, 0, 1, 1.5}).Draw(t, "cap"),
	}
	groups := []*allocation.Group{nil, nil, {Free: rapid.IntRange(-1, 2).Draw(t, "free")}, {Free: 1}}
	for range rapid.IntRange(0, min(4, *left)).Draw(t, "pods") {
		*left--
		a.Pods = append(a.Pods, allocation.Pod{
			Key: fmt.Sprint("p", *left), Demand: drawVector(t, "demand", least, 3), Priority: rapid.SampledFrom([]int{1, 1, 0, 7}).Draw(t, "priority"),
			Placed: rapid.Bool().Draw(t, "placed"), Arrival: rapid.Int64Range(0, 2).Draw(t, "arrival"),
			Group: groups[rapid.IntRange(0, len(groups)-1).Draw(t, "group")],
		})
	}
	if depth > 0 {
		for i := range rapid.IntRange(0, 3).Draw(t, "children") {
			a.Children = append(a.Children, drawTree(t, fmt.Sprint(name, i), depth-1, left, least))
		}
	}
	return a
}

func TestPropertyOrderIsTheOraclesOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := 9
		tree, size := drawTree(t, "r", 2, &left, 1), drawVector(t, "size", 1, 20)
		got, want := keys(allocation.Order(tree, size, allocation.Options{})), strings.Join(oracle.AllocationOrder(tree, size), " ")
		if got != want {
			t.Fatalf("the order is %s, want %s", got, want)
		}
	})
}

// shuffle puts the pods and children of a tree into another order, and has the pods arrive at other times one after the other.
func shuffle(a *allocation.Allocation, random *rand.Rand) *allocation.Allocation {
	b := *a
	b.Pods, b.Children = slices.Clone(a.Pods), nil
	for i := range b.Pods {
		b.Pods[i].Arrival = 1000*b.Pods[i].Arrival - 7
	}
	random.Shuffle(len(b.Pods), func(i, j int) { b.Pods[i], b.Pods[j] = b.Pods[j], b.Pods[i] })
	for _, child := range a.Children {
		b.Children = append(b.Children, shuffle(child, random))
	}
	random.Shuffle(len(b.Children), func(i, j int) { b.Children[i], b.Children[j] = b.Children[j], b.Children[i] })
	return &b
}

// Neither the order of a map nor that in which pods are seen decides anything, nor when they arrive but for who comes before whom. This holds for pods that request nothing, too.
func TestPropertyOrderDependsOnTheTreeAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := 20
		tree, size := drawTree(t, "r", 3, &left, 0), drawVector(t, "size", 0, 20)
		options := allocation.Options{RankPerLevel: rapid.Bool().Draw(t, "per level")}
		other := shuffle(tree, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		if got, want := keys(allocation.Order(other, size, options)), keys(allocation.Order(tree, size, options)); got != want {
			t.Fatalf("the order is %s, and was %s", got, want)
		}
	})
}

// What the seed says holds at the top: classes and ranks come first, utilization grows, and pods of one allocation and class are by priority.
func TestPropertyInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := 20
		entries := allocation.Order(drawTree(t, "r", 3, &left, 0), drawVector(t, "size", 0, 20), allocation.Options{})
		for i := 1; i < len(entries); i++ {
			a, b := entries[i-1], entries[i]
			switch {
			case a.Class != b.Class:
				if a.Class > b.Class {
					t.Fatalf("%s of class %d is before %s of class %d", a.Pod.Key, a.Class, b.Pod.Key, b.Class)
				}
			case a.Rank > b.Rank:
				t.Fatalf("%s of rank %d is before %s of rank %d", a.Pod.Key, a.Rank, b.Pod.Key, b.Rank)
			case a.Class == allocation.Ordinary && (a.After != b.Before || b.After < b.Before):
				t.Fatalf("utilization is %v, %v and then %v, %v", a.Before, a.After, b.Before, b.After)
			}
			for _, c := range entries[:i] {
				if c.Of == b.Of && c.Class == b.Class && c.Pod.Priority < b.Pod.Priority {
					t.Fatalf("%s of priority %d is before %s of priority %d", c.Pod.Key, c.Pod.Priority, b.Pod.Key, b.Pod.Priority)
				}
			}
		}
	})
}

// within reports whether the pods of its allocation that matter more than one, and run or may be tried, request less than is reserved.
func within(e *allocation.Entry, all []allocation.Entry) bool {
	before := make(allocation.Vector, resources)
	for i := range all {
		f := &all[i]
		more := f.Pod.Priority > e.Pod.Priority || f.Pod.Priority == e.Pod.Priority && f.Pod.Placed && !e.Pod.Placed ||
			f.Pod.Priority == e.Pod.Priority && f.Pod.Placed == e.Pod.Placed && cmp.Or(cmp.Compare(f.Pod.Arrival, e.Pod.Arrival), cmp.Compare(f.Pod.Key, e.Pod.Key)) < 0
		if f.Of == e.Of && more && (f.Pod.Placed || mayBeTried(f)) {
			before = before.Plus(f.Pod.Demand)
		}
	}
	for i, demand := range before {
		if demand >= e.Of.Reserved.At(i) {
			return false
		}
	}
	return e.Pod.Priority > 0
}

// mayBeTried reports whether a pod waits for nothing but its turn and a node.
func mayBeTried(e *allocation.Entry) bool { return !e.Pod.Placed && e.Class < allocation.StandsBy }

// With one rank for all, no pod beyond its reservation comes before one of another allocation that is within its own. It does not matter
// what waits beyond the maximum, or for others of its group.
func TestPropertyReservedFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left, top := 16, root()
		for i := range 4 {
			a := drawTree(t, fmt.Sprint("a", i), 0, &left, 0)
			a.Rank = allocation.DefaultRank
			top.Children = append(top.Children, a)
		}
		beyond, all := "", allocation.Order(top, drawVector(t, "size", 0, 20), allocation.Options{})
		for i := range all {
			e := &all[i]
			if e.Exceeds() || !e.Pod.Placed && !mayBeTried(e) {
				continue
			}
			if its := within(e, all); its && beyond != "" {
				t.Fatalf("%s is within its reservation and comes after %s, which is not", e.Pod.Key, beyond)
			} else if !its {
				beyond = e.Pod.Key
			}
		}
	})
}

// without is a tree without some pods.
func without(a *allocation.Allocation, left map[string]bool) *allocation.Allocation {
	b := *a
	b.Pods, b.Children = slices.DeleteFunc(slices.Clone(a.Pods), func(p allocation.Pod) bool { return left[p.Key] }), nil
	for _, child := range a.Children {
		b.Children = append(b.Children, without(child, left))
	}
	return &b
}

// say says where pods are, of those that run and those that may be tried, and who must not run. Those that wait and must not be tried are named apart.
func say(all []allocation.Entry) (places, exceeds []string, others map[string]bool) {
	others = make(map[string]bool)
	for i := range all {
		switch e := &all[i]; {
		case e.Exceeds():
			exceeds = append(exceeds, e.Pod.Key)
		case e.Pod.Placed || mayBeTried(e):
			places = append(places, fmt.Sprint(e.Pod.Key, e.Class, e.Rank, e.Reserved, e.Before, e.After))
		default:
			others[e.Pod.Key] = true
		}
	}
	slices.Sort(exceeds)
	return places, exceeds, others
}

// Pods that stand by, and those that wait beyond the maximum, change nothing for others, whatever they request and however much they matter.
func TestPropertyPodsThatMustNotBeTriedUseUpNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := 20
		tree, size := drawTree(t, "r", 3, &left, 0), drawVector(t, "size", 0, 20)
		options := allocation.Options{RankPerLevel: rapid.Bool().Draw(t, "per level")}
		with, exceeds, others := say(allocation.Order(tree, size, options))
		got, still, more := say(allocation.Order(without(tree, others), size, options))
		if !slices.Equal(got, with) || !slices.Equal(still, exceeds) || len(more) > 0 {
			t.Fatalf("without %v the order is %q, and %q exceed; with them it is %q, and %q exceed", others, got, still, with, exceeds)
		}
	})
}

// A pod that runs must not only if those that run up to it are more than the maximum, by priority.
func TestPropertyThoseThatRunAreStoppedByThoseThatRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := 20
		tree, size := drawTree(t, "r", 2, &left, 0), drawVector(t, "size", 0, 20)
		waiting := make(map[string]bool)
		all := allocation.Order(tree, size, allocation.Options{})
		for i := range all {
			waiting[all[i].Pod.Key] = !all[i].Pod.Placed
		}
		_, exceeds, _ := say(all)
		if _, alone, _ := say(allocation.Order(without(tree, waiting), size, allocation.Options{})); !slices.Equal(alone, exceeds) {
			t.Fatalf("with pods that wait %q exceed, and without %q", exceeds, alone)
		}
	})
}

// A quantity that is as large as can be is beyond the reservation, and not before everybody else.
func TestAmountsDoNotOverflow(t *testing.T) {
	huge := leaf("huge", 1, pods("h", 1, math.MaxInt64, math.MaxInt64)...)
	got := order(root(huge, leaf("other", 1, pods("p", 1, 1, 1)...)), math.MaxInt64)
	wantOrder(t, got, "p1 h1 p2 h2")
	if e := got[3]; e.Before < 0 || e.After < e.Before {
		t.Errorf("the last has %v and %v", e.Before, e.After)
	}
}
