// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	clientcache "k8s.io/client-go/tools/cache"
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

// begins has the scheduler see a StatefulSet of the name, with a UID, whose first index is this one.
func (s *statefulSet) begins(uid types.UID, start int) {
	s.Helper()
	known := clientcache.NewIndexer(clientcache.MetaNamespaceKeyFunc, clientcache.Indexers{clientcache.NamespaceIndex: clientcache.MetaNamespaceIndexFunc})
	s.must(known.Add(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: uid},
		Spec:       appsv1.StatefulSetSpec{Ordinals: &appsv1.StatefulSetOrdinals{Start: int32(start)}},
	}))
	s.pl.trees.sets = appslisters.NewStatefulSetLister(known)
	s.pl.trees.reset()
}

// pod is the one of an index.
func (s *statefulSet) pod(index int) *corev1.Pod {
	name := fmt.Sprint("db-", index)
	return plugintest.Pod(st.MakePod().Name(name).UID(name).Label("controller-revision-hash", "1").
		Label("apps.kubernetes.io/pod-index", fmt.Sprint(index)).Annotation(clusterview.PlacementAnnotation, s.levels), "apps/v1 StatefulSet db db-uid")
}

// add places the pod of an index, by the node hint or by scores.
func (s *statefulSet) add(index int, byScores bool) {
	s.Helper()
	pod := s.pod(index)
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

// prefix counts the pods of the indices below one by zone, of zones from a on.
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
		start := rapid.SampledFrom([]int{0, 1, 100, 10000}).Draw(rt, "start")
		s.begins("db-uid", start)
		before, meanwhile := rapid.IntRange(0, 10).Draw(rt, "pods before"), rapid.IntRange(0, 6).Draw(rt, "pods meanwhile")
		size := 3 * (before + meanwhile)
		closed := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "closed")
		for index := range size {
			s.f.refused = nil
			if index >= before && index < before+meanwhile {
				s.f.refused = []string{closed + "0", closed + "1", closed + "2"}
			}
			s.add(start+index, s.f.refused == nil && rapid.Bool().Draw(rt, "by scores"))
			if counts := s.prefix(start+size, 3); s.f.refused == nil && index >= before+2*meanwhile && slices.Max(counts)-slices.Min(counts) > 1 {
				rt.Fatalf("with %d pods, and zone %s closed from %d to %d, zones have %v", index+1, closed, before, before+meanwhile, counts)
			}
		}
	})
}

// Shares hold for each number of pods as well, whatever the index of the first one is. As long as a StatefulSet is not known, it is 0.
func TestEveryPrefixOfAStatefulSetHasItsShares(t *testing.T) {
	for name, tc := range map[string]struct {
		start, first int
		uid          types.UID
	}{
		"from 0":                               {0, 0, "db-uid"},
		"from 2":                               {2, 2, "db-uid"},
		"up to the last index that there is":   {1<<31 - 11, 1<<31 - 11, "db-uid"},
		"not known, as another of the name is": {2, 0, "former-uid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStatefulSet(t, t, "spread=zone;weight.a=70;weight.b=20;weight.c=10", 2, 2, 2)
			s.begins(tc.uid, tc.start)
			for _, index := range []int{9, 3, 0, 7, 1, 8, 2, 6, 5, 4} {
				s.add(tc.first+index, index%2 == 0)
			}
			for pods, want := range map[int][]int{1: {1, 0, 0}, 8: {5, 2, 1}, 10: {7, 2, 1}} {
				if got := s.prefix(tc.first+pods, 3); !slices.Equal(got, want) {
					t.Errorf("of the first %d pods zones have %v, want %v", pods, got, want)
				}
			}
		})
	}
}

// A StatefulSet that takes its pods over from another cluster begins at a lower index with each. Its pods have their shares all the time.
func TestSharesOfAStatefulSetThatGrowsDownwards(t *testing.T) {
	s := newStatefulSet(t, t, "spread=zone;weight.a=68;weight.b=32", 2, 2)
	for pods, want := range [][]int{{0, 0}, {1, 0}, {1, 1}, {2, 1}, {3, 1}, {3, 2}, {4, 2}, {5, 2}, {5, 3}, {6, 3}, {7, 3}} {
		if pods > 0 {
			s.begins("db-uid", 110-pods)
			s.add(110-pods, pods%2 == 0)
		}
		if got := s.prefix(110, 2); !slices.Equal(got, want) {
			t.Errorf("with %d pods zones have %v, want %v", pods, got, want)
		}
	}
}

// A StatefulSet that is numbered from a higher index on gets its new pods first, in whatever order, and loses those below it then. For each
// number of pods, what is left is one pod away from its shares at most, and half a pod where they are equal. So many numbers higher
// that there are no turns, it is so for all of its pods.
func TestSharesOfAStatefulSetThatIsNumberedAnew(t *testing.T) {
	for levels, of := range map[string]struct{ inA, tenthsAway int }{
		"spread=zone;weight.a=70;weight.b=30": {7, 10},
		"spread=zone;weight.a=1;weight.b=1":   {5, 5},
		"spread=zone":                         {5, 5},
	} {
		for to, least := range map[int]int{1: 1, 2: 1, 5: 1, 10: 1, 5000: 10} {
			s := newStatefulSet(t, t, levels, 1, 3)
			for index := range 10 {
				s.add(index, false)
			}
			s.begins("db-uid", to)
			for _, i := range []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9} {
				if s.nodes[to+i] == nil {
					s.add(to+i, i%2 == 0)
				}
			}
			for index := range min(to, 10) {
				s.remove(index)
			}
			for pods := least; pods <= 10; pods++ {
				if a := s.prefix(to+pods, 2)[0]; max(10*a-of.inA*pods, of.inA*pods-10*a) > of.tenthsAway {
					t.Errorf("%s, numbered from %d: of the first %d pods %d are in zone a", levels, to, pods, a)
				}
			}
		}
	}
}

// A pod below the first index is about to be deleted. It goes where the fewest are.
func TestPodBelowTheFirstIndex(t *testing.T) {
	s := newStatefulSet(t, t, "spread=zone;weight.a=70;weight.b=30", 2, 2)
	s.begins("db-uid", 5)
	s.add(5, false)
	s.add(0, false)
	if got := s.prefix(6, 2); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("zones have %v, want one pod each", got)
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
	s.add(0, false)
	s.f.refused = []string{"a0"}
	ledger.write(at(s.pl.identifier.Identify(s.pod(2)), "a1"), placement.Record{Failures: 1, Unforgiven: 1})
	if on := s.nodes[0].Spec.NodeName; on[0] != 'a' {
		t.Fatalf("the first pod is on %s", on)
	}
	s.f.feasible()
	node, _, err := s.pl.Hint(s.f.ctx, ledger.under(), s.pod(2), true, s.f.fits)
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
