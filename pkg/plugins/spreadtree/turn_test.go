// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// statefulSet is one whose pods are placed by the plugin, by index.
type statefulSet struct {
	*rig
	f      *filters
	levels string
	nodes  map[int]*corev1.Pod // those that run
	// asksAnew has the filters asked about each pod, whatever they have said of the one before.
	asksAnew bool
}

func newStatefulSet(t *testing.T, tb placementtest.TB, levels string, zones ...int) *statefulSet {
	r := newRig(t.Context(), tb, args())
	for z, nodes := range zones {
		for i := range nodes {
			r.join(fmt.Sprintf("%c%d", 'a'+z, i), fmt.Sprintf("zone=%c", 'a'+z))
		}
	}
	return &statefulSet{rig: r, f: &filters{rig: r}, levels: levels, nodes: make(map[int]*corev1.Pod)}
}

// add places the pod of an index, by the node hint or by scores.
func (s *statefulSet) add(index int, byScores bool) {
	s.Helper()
	name := fmt.Sprint("db-", index)
	pod := plugintest.Pod(st.MakePod().Name(name).UID(name).Label("controller-revision-hash", "1").
		Label("apps.kubernetes.io/pod-index", fmt.Sprint(index)).Annotation(clusterview.PlacementAnnotation, s.levels), "apps/v1 StatefulSet db db-uid")
	node := ""
	if byScores {
		scores := s.rank(pod, framework.NewCycleState())
		for _, n := range sortedKeys(scores) {
			if node == "" && scores[n] == fwk.MaxScore && !slices.Contains(s.f.refused, n) {
				node = n
			}
		}
	} else {
		node, _ = s.f.hint(pod, !s.asksAnew)
	}
	s.nodes[index] = s.assume(pod, node)
}

func (s *statefulSet) remove(index int) {
	s.must(s.cache.ForgetPod(s.logger, s.nodes[index]))
	delete(s.nodes, index)
}

// prefix counts the pods of the first indices by zone, of zones from a on.
func (s *statefulSet) prefix(pods, zones int) []int {
	counts := make([]int, zones)
	for index, p := range s.nodes {
		if index < pods {
			counts[p.Spec.NodeName[0]-'a']++
		}
	}
	return counts
}

// In whatever order the pods of a StatefulSet come, and wherever some of them were before, what is left of it is even for each
// number of pods.
func TestEveryPrefixOfAStatefulSetIsEven(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		zones := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 4).Draw(rt, "nodes")
		s := newStatefulSet(t, rt, "spread=zone,spread=kubernetes.io/hostname", zones...)
		size := rapid.IntRange(1, 12).Draw(rt, "pods")
		order := make([]int, size)
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(rt, "order")
		for _, index := range order {
			s.add(index, rapid.Bool().Draw(rt, "by scores"))
		}
		for _, index := range rapid.Permutation(order).Draw(rt, "again")[:rapid.IntRange(0, size-1).Draw(rt, "gone")] {
			s.remove(index)
			s.add(index, false)
		}
		for pods := 1; pods <= size; pods++ {
			if counts := s.prefix(pods, len(zones)); slices.Max(counts)-slices.Min(counts) > 1 {
				rt.Fatalf("of the first %d pods zones have %v", pods, counts)
			}
		}
	})
}

// Pods whose turn falls to a zone that is closed go elsewhere. When it is open again it catches up, whatever turn the next pods have.
func TestTurnsOfAZoneThatWasClosed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		levels := rapid.SampledFrom([]string{"spread=zone", "spread=zone;weight.a=2;weight.b=2;weight.c=2"}).Draw(rt, "levels")
		s := newStatefulSet(t, rt, levels, rapid.SliceOfN(rapid.IntRange(1, 3), 3, 3).Draw(rt, "nodes")...)
		s.asksAnew = true
		before, meanwhile := rapid.IntRange(0, 10).Draw(rt, "pods before"), rapid.IntRange(0, 6).Draw(rt, "pods meanwhile")
		size := 3 * (before + meanwhile)
		closed := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "closed")
		for index := range size {
			s.f.refused = nil
			if index >= before && index < before+meanwhile {
				s.f.refused = []string{closed + "0", closed + "1", closed + "2"}
			}
			s.add(index, s.f.refused == nil && rapid.Bool().Draw(rt, "by scores"))
			if counts := s.prefix(size, 3); s.f.refused == nil && index >= before+2*meanwhile && slices.Max(counts)-slices.Min(counts) > 1 {
				rt.Fatalf("with %d pods, and zone %s closed from %d to %d, zones have %v", index+1, closed, before, before+meanwhile, counts)
			}
		}
	})
}

// Shares hold for each number of pods as well.
func TestEveryPrefixOfAStatefulSetHasItsShares(t *testing.T) {
	s := newStatefulSet(t, t, "spread=zone;weight.a=70;weight.b=20;weight.c=10", 2, 2, 2)
	for _, index := range []int{9, 3, 0, 7, 1, 8, 2, 6, 5, 4} {
		s.add(index, index%2 == 0)
	}
	for pods, want := range map[int][]int{8: {5, 2, 1}, 10: {7, 2, 1}} {
		if got := s.prefix(pods, 3); !slices.Equal(got, want) {
			t.Errorf("of the first %d pods zones have %v, want %v", pods, got, want)
		}
	}
}

// A branch that takes no pod is left out of the order.
func TestTurnOfABranchThatIsFull(t *testing.T) {
	s := newStatefulSet(t, t, "spread=zone", 2, 1, 2, 1, 1)
	s.f.refused = []string{"b0", "d0", "e0"}
	for _, index := range []int{3, 0, 5, 2, 1, 4, 7, 6} {
		s.add(index, false)
	}
	for pods := 1; pods <= 8; pods++ {
		counts := s.prefix(pods, 5)
		if counts[1]+counts[3]+counts[4] > 0 || max(counts[0], counts[2])-min(counts[0], counts[2]) > 1 {
			t.Errorf("of the first %d pods zones have %v", pods, counts)
		}
	}
}

// A branch in which everything that is healthy is full has nothing but faulty nodes to offer, and comes after the others.
func TestTurnOfABranchWithNothingHealthyLeft(t *testing.T) {
	s := newStatefulSet(t, t, "spread=zone", 2, 2)
	ledger := newLedger(placement.Faults{Threshold: 1})
	pod := func(index int) *corev1.Pod {
		name := fmt.Sprint("db-", index)
		return plugintest.Pod(st.MakePod().Name(name).UID(name).Label("controller-revision-hash", "1").
			Label("apps.kubernetes.io/pod-index", fmt.Sprint(index)).Annotation(clusterview.PlacementAnnotation, s.levels), "apps/v1 StatefulSet db db-uid")
	}
	s.add(0, false)
	s.f.refused = []string{"a0"}
	ledger.write(at(s.pl.identifier.Identify(pod(2)), "a1"), placement.Record{Failures: 1, Unforgiven: 1})
	if on := s.nodes[0].Spec.NodeName; on[0] != 'a' {
		t.Fatalf("the first pod is on %s", on)
	}
	s.f.feasible()
	node, _, err := s.pl.Hint(s.f.ctx, ledger.under(), pod(2), true, s.f.fits)
	if err != nil || node == "" || node[0] != 'b' {
		t.Errorf("the pod is proposed for %q, %v: it is the turn of zone a, which has one node left that is faulty", node, err)
	}
}

// Where a first level has more branches than take turns, no more is asked than for another pod.
func TestTurnAmongManyBranches(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for i := range 130 {
		r.join(fmt.Sprintf("n%03d", i), fmt.Sprint("rack=", i/2), fmt.Sprint("zone=", i/26))
	}
	for levels, want := range map[string]int{"spread=rack": 1, "spread=zone": 5} {
		s := &statefulSet{rig: r, f: &filters{rig: r}, levels: levels, nodes: make(map[int]*corev1.Pod)}
		for index := range 2 {
			s.add(index, false)
			if got := len(s.f.asked); got != want {
				t.Errorf("over %s the filters were asked about %d nodes for pod %d, want %d", levels, got, index, want)
			}
		}
		s.remove(1)
		s.remove(0)
	}
}
