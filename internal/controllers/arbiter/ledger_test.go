// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	goleak.VerifyTestMain(m)
}

// nodeOf is a node with so many thousandths of a CPU.
func nodeOf(name string, milli int64) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

// podOf is a pod that requests so many thousandths of a CPU.
func podOf(name string, milli int64, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName = "espalier-scheduler"
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI),
	}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

// onNode is the pod on a node.
func onNode(p *corev1.Pod, node string) *corev1.Pod {
	p = p.DeepCopy()
	p.Spec.NodeName = node
	return p
}

// ledgerOf is a ledger with nodes.
func ledgerOf(nodes ...*corev1.Node) *Ledger {
	l := NewLedger(clock.RealClock{})
	for _, n := range nodes {
		l.SetNode(n)
	}
	return l
}

// admits reports whether a pod is admitted.
func admits(t *testing.T, l *Ledger, p *corev1.Pod, node string) bool {
	t.Helper()
	return len(l.Admit(t.Context(), p, node, nil, false)) == 0
}

// free is how many thousandths of a CPU the largest pod may ask for that a node would take.
func free(t *testing.T, l *Ledger, node string) int64 {
	t.Helper()
	least, most := int64(0), int64(1<<20)
	for least < most {
		half := (least + most + 1) / 2
		if reasons, _ := l.try(t.Context(), podOf("probe", half), node, nil, true); len(reasons) == 0 {
			least = half
		} else {
			most = half - 1
		}
	}
	return least
}

func TestVector_VV9_ConcurrentConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000), nodeOf("second", 1000))
		var admitted atomic.Int32
		var running sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			running.Go(func() {
				if admits(t, l, podOf(name, 600), "n") {
					admitted.Add(1)
				} else if !admits(t, l, podOf(name, 600), "second") {
					t.Errorf("%s has no second candidate", name)
				}
			})
		}
		running.Wait()
		if n := admitted.Load(); n != 1 || free(t, l, "n") != 400 || free(t, l, "second") != 400 {
			t.Errorf("%d of two are admitted, and %d are free, %d on the second candidate; want one, and 400 on each", n, free(t, l, "n"), free(t, l, "second"))
		}
	})
	// Three pods of 400: two are bound, the third conflicts, and 200 are left.
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000))
		var got []bool
		for i := range 3 {
			got = append(got, admits(t, l, podOf(fmt.Sprint("p", i), 400), "n"))
		}
		if !slices.Equal(got, []bool{true, true, false}) || free(t, l, "n") != 200 {
			t.Errorf("admitted are %v, and %d are free", got, free(t, l, "n"))
		}
	})
}

func TestVector_VV10_Rollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000), nodeOf("second", 1000))
		p := podOf("p", 600)
		if !admits(t, l, p, "n") {
			t.Fatal("it is not admitted")
		}
		// The binding fails, and nobody says so. The same pod is tried on the next candidate.
		if !admits(t, l, p, "second") {
			t.Fatal("the same pod is not admitted to its next candidate")
		}
		if n := l.locks.Len(); n != 0 {
			t.Errorf("%d locks are held", n)
		}
		l.SetPod(onNode(p, "second"))
		if free(t, l, "n") != 1000 || free(t, l, "second") != 400 || l.Unseen() != 0 {
			t.Errorf("the pod is on the second, and %d and %d are free", free(t, l, "n"), free(t, l, "second"))
		}
	})
	// A pod that never comes gives its room back, in the end by itself.
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000))
		admits(t, l, podOf("p", 600), "n")
		time.Sleep(unseen - time.Second)
		l.Expire()
		if free(t, l, "n") != 400 || l.Unseen() != 1 {
			t.Error("it was given up too early")
		}
		time.Sleep(time.Second)
		l.Expire()
		if free(t, l, "n") != 1000 || l.Unseen() != 0 {
			t.Errorf("%d are free, and %d pods are to come", free(t, l, "n"), l.Unseen())
		}
	})
}

// Nomad's plan has an allocation for each of two nodes. The second equals what its node has in all, on top of what is there. The first is kept, and the
// second dropped. Of all_at_once, by which nothing is kept, there is nothing in a binding: groups of pods are their scheduler's.
func TestVector_NV22_PlanApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("node-1", 4000), nodeOf("node-2", 4000))
		l.SetPod(onNode(podOf("reserved", 100), "node-2"))
		if !admits(t, l, podOf("fits", 500), "node-1") {
			t.Error("what fits is dropped")
		}
		reasons := l.Admit(t.Context(), podOf("full", 4000), "node-2", nil, false)
		if len(reasons) != 1 || reasons[0] != "of cpu the pod requests 4, and 3900m of 4 are free" {
			t.Errorf("the other is dropped because %q", reasons)
		}
		if free(t, l, "node-1") != 3500 || free(t, l, "node-2") != 3900 || l.Unseen() != 1 {
			t.Errorf("%d and %d are free, and %d pods are to come", free(t, l, "node-1"), free(t, l, "node-2"), l.Unseen())
		}
	})
}

// A binding that would be refused waits for news, and for no longer than it may.
func TestWaitsOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		news  func(*Ledger)
		want  bool
		took  time.Duration
	}{
		"the pod there goes":    {20 * time.Millisecond, func(l *Ledger) { l.RemovePod("there") }, true, 20 * time.Millisecond},
		"it ends":               {20 * time.Millisecond, func(l *Ledger) { l.SetPod(onNode(podOf("there", 1000, ended), "n")) }, true, 20 * time.Millisecond},
		"the node grows":        {20 * time.Millisecond, func(l *Ledger) { l.SetNode(nodeOf("n", 2000)) }, true, 20 * time.Millisecond},
		"news of no use":        {20 * time.Millisecond, func(l *Ledger) { l.SetNode(nodeOf("n", 1000)) }, false, catchUp},
		"news of another node":  {20 * time.Millisecond, func(l *Ledger) { l.SetNode(nodeOf("other", 2000)) }, false, catchUp},
		"what was to come does": {20 * time.Millisecond, func(l *Ledger) { l.SetPod(onNode(podOf("phantom", 500), "other")) }, true, 20 * time.Millisecond},
		"too late":              {2 * catchUp, func(l *Ledger) { l.RemovePod("there") }, false, catchUp},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ledgerOf(nodeOf("n", 1000))
				if name == "what was to come does" {
					admits(t, l, podOf("phantom", 500), "n")
				} else {
					l.SetPod(onNode(podOf("there", 1000), "n"))
				}
				go func() {
					time.Sleep(tc.after)
					tc.news(l)
				}()
				start := time.Now()
				if got := admits(t, l, podOf("p", 600), "n"); got != tc.want || time.Since(start) != tc.took {
					t.Errorf("admitted: %t, after %s; want %t after %s", got, time.Since(start), tc.want, tc.took)
				}
				synctest.Wait()
				time.Sleep(time.Second) // for who was too late
			})
		})
	}
}

func ended(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000))
		p := podOf("p", 600)
		for range 2 {
			if !admits(t, l, p, "n") || free(t, l, "n") != 400 {
				t.Error("a binding, which is sent again, is not admitted, or counted twice")
			}
		}
		l.SetPod(onNode(p, "n"))
		if free(t, l, "n") != 400 || l.Unseen() != 0 {
			t.Error("a pod that comes is not counted once")
		}
		if !admits(t, l, p, "elsewhere") || l.Unseen() != 0 {
			t.Error("of a pod that is bound the API server should say that it is")
		}
		bigger := onNode(podOf("p", 900), "n")
		l.SetPod(bigger)
		if free(t, l, "n") != 100 {
			t.Error("a pod that is resized is counted as it was")
		}
		bigger.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		l.SetPod(bigger)
		if free(t, l, "n") != 100 {
			t.Error("a pod that is terminating gives its room away")
		}
		l.RemovePod("p")
		l.RemovePod("p")
		if free(t, l, "n") != 1000 {
			t.Error("a pod that is gone takes room")
		}
		if reasons := l.Admit(t.Context(), podOf("dry", 600), "n", nil, true); len(reasons) > 0 || free(t, l, "n") != 1000 {
			t.Errorf("a dry run leaves something, or is refused: %v", reasons)
		}
	})
}

// A pod is bound once more at the moment at which its room is given back. It counts, as long as it is to come.
func TestAdmittedWhileItIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000))
		p := podOf("p", 400)
		admits(t, l, p, "n")
		time.Sleep(unseen)
		over := l.reserved.Expire(time.Now())
		if !admits(t, l, p, "n") {
			t.Error("it is not admitted again")
		}
		l.giveBack(over)
		if free(t, l, "n") != 600 || l.Unseen() != 1 {
			t.Errorf("%d are free, and %d pods are to come; want 600, and one", free(t, l, "n"), l.Unseen())
		}
	})
}

// Nothing is left of nodes and pods that are gone.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000))
		admits(t, l, podOf("a", 100), "n")
		admits(t, l, podOf("b", 100), "unknown") // which may be a node that the watch has not shown
		l.SetPod(onNode(podOf("c", 100), "n"))
		l.RemovePod("c")
		l.RemoveNode("n")
		time.Sleep(unseen)
		l.Expire()
		if len(l.nodes) != 0 || len(l.seen) != 0 || l.Unseen() != 0 || l.locks.Len() != 0 {
			t.Errorf("left are %d nodes, %d pods, %d that are to come and %d locks", len(l.nodes), len(l.seen), l.Unseen(), l.locks.Len())
		}
	})
}

// Bindings to many nodes at once, by three schedulers that each try every pod: no node has more than it can take, and all that is admitted and comes is counted once.
func TestNeverTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, pods = 10, 100
		l := NewLedger(clock.RealClock{})
		for i := range nodes {
			l.SetNode(nodeOf(fmt.Sprint("n", i), 1000))
		}
		var mu sync.Mutex
		bound := map[string]string{} // as the API server has it: the first binding of a pod is made
		var running sync.WaitGroup
		for s := range 3 {
			running.Go(func() {
				for i := range pods {
					p, node := podOf(fmt.Sprint("p", i), 100), fmt.Sprint("n", (i*7+s*3)%nodes)
					if !admits(t, l, p, node) {
						continue
					}
					mu.Lock()
					if _, is := bound[p.Name]; is {
						mu.Unlock()
						continue
					}
					bound[p.Name] = node
					mu.Unlock()
					time.Sleep(time.Duration(i%5) * time.Millisecond) // until the watch says so
					l.SetPod(onNode(p, node))
				}
			})
		}
		running.Wait()
		counts := map[string]int{}
		for _, node := range bound {
			counts[node]++
		}
		for node, n := range counts {
			if n > 10 {
				t.Errorf("node %s has %d pods, and room for 10", node, n)
			}
			if got := free(t, l, node); got != int64(1000-100*n) {
				t.Errorf("node %s has %d pods, and %d free", node, n, got)
			}
		}
		if l.Unseen() != 0 || l.locks.Len() != 0 {
			t.Errorf("%d pods are to come, and %d locks are held", l.Unseen(), l.locks.Len())
		}
	})
}

// A binding that failed is sent again much later. The pod keeps its room for as long as any other that was admitted then: it is on its way.
func TestABindingThatIsSentAgainKeepsItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledgerOf(nodeOf("n", 1000))
		p := podOf("p", 600)
		admits(t, l, p, "n")
		time.Sleep(unseen - time.Second)
		if reasons := l.Admit(t.Context(), p, "n", nil, true); len(reasons) > 0 || !admits(t, l, p, "n") {
			t.Error("a binding that is sent again is refused")
		}
		time.Sleep(unseen - time.Second)
		l.Expire()
		if admits(t, l, podOf("other", 600), "n") {
			t.Error("its room was given away")
		}
		l.Admit(t.Context(), p, "n", nil, true) // which keeps nothing
		time.Sleep(time.Second)
		l.Expire()
		if free(t, l, "n") != 1000 || l.Unseen() != 0 {
			t.Errorf("%d are free, and %d pods are to come", free(t, l, "n"), l.Unseen())
		}
	})
}
