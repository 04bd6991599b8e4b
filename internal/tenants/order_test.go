// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func queued(p *corev1.Pod) *framework.QueuedPodInfo {
	return &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: p}, QueueingParams: framework.QueueingParams{Timestamp: p.CreationTimestamp.Time}}
}

// Pods of a partition are taken in its order, whatever their age, and a group when it is the turn of its last pod.
func TestBefore(t *testing.T) {
	r := newRig(t)
	r.allocation("rich", reserving(9))
	r.allocation("poor")
	poor, none, rich := r.pod("poor", "poor"), r.pod("none", "x"), r.pod("rich", "rich")
	r.Compute()
	if !r.Before(queued(rich), queued(poor)) || r.Before(queued(poor), queued(rich)) {
		t.Error("the pod that is within its reservation does not come first")
	}
	group := &framework.QueuedPodGroupInfo{PodGroupInfo: &framework.PodGroupInfo{}}
	group.Timestamp = begin
	if !r.Before(group, queued(none)) {
		t.Error("a group of no allocation is not ordered by its age")
	}
	if !r.Before(queued(none), queued(poor)) {
		t.Error("a pod of no allocation that is older than the youngest before another one waits for it")
	}
}

// Among pods of no allocation the order is that of PreassignedFirst: by priority, then by age with a head start.
func TestBeforeWithoutAllocations(t *testing.T) {
	r := newRig(t)
	daemon := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	in := []fwk.QueuedEntityInfo{}
	for _, p := range []*corev1.Pod{
		st.MakePod().Name("urgent").UID("1").Priority(10).CreationTimestamp(metav1.NewTime(begin.Add(9 * time.Second))).Obj(),
		st.MakePod().Name("daemon").UID("2").OwnerReference("d", daemon).CreationTimestamp(metav1.NewTime(begin.Add(9 * time.Second))).Obj(),
		st.MakePod().Name("old").UID("3").CreationTimestamp(metav1.NewTime(begin)).Obj(),
		st.MakePod().Name("young").UID("4").CreationTimestamp(metav1.NewTime(begin.Add(time.Second))).Obj(),
	} {
		in = append(in, queued(p))
	}
	for i, a := range in {
		for j, b := range in {
			if got := r.Before(a, b); got != (i < j) {
				t.Errorf("%d before %d: %t", i, j, got)
			}
		}
	}
}

// The queue is a heap: an order that contradicts itself would lose pods in it.
func TestPropertyBeforeIsAnOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		r.allocation("a", reserving(2))
		r.allocation("b")
		var all []fwk.QueuedEntityInfo
		for i := range 8 {
			p := r.pod(fmt.Sprint(i), rapid.SampledFrom([]string{"a", "b", "none"}).Draw(rt, "team"), func(p *corev1.Pod) {
				p.Spec.Priority = new(rapid.Int32Range(-1, 1).Draw(rt, "priority"))
				p.CreationTimestamp = metav1.NewTime(begin.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "age")) * time.Second))
			})
			all = append(all, queued(p))
		}
		r.Compute()
		slices.SortFunc(all, func(a, b fwk.QueuedEntityInfo) int {
			switch {
			case r.Before(a, b):
				return -1
			case r.Before(b, a):
				return 1
			}
			return 0
		})
		for i := range all {
			for j := range i {
				if r.Before(all[i], all[j]) {
					rt.Errorf("sorted, entity %d is before entity %d", i, j)
				}
			}
		}
	})
}

// The order is computed at once after a quiet time, and then every two seconds at most.
func TestDebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.allocation("a")
		ctx, cancel := context.WithCancel(t.Context())
		go r.run(ctx, nil)
		computed := func() uint64 {
			synctest.Wait()
			_, version := r.Order()
			return version
		}
		first := computed()
		for range 15 {
			time.Sleep(100 * time.Millisecond)
			r.dirty()
		}
		if got := computed(); got != first {
			t.Errorf("it was computed %d times in 1.5 s", got-first+1)
		}
		time.Sleep(time.Second)
		if got := computed(); got != first+1 {
			t.Errorf("it was computed %d times in 2.5 s, want twice", got-first+1)
		}
		time.Sleep(time.Minute)
		if got := computed(); got != first+1 {
			t.Errorf("it was computed %d times more, though nothing has changed", got-first-1)
		}
		cancel()
	})
}

// The lowest number that is free is given, also while those before are being bound, and given back.
func TestVector_TV23_Reserve(t *testing.T) {
	r := newRig(t)
	r.allocation("a", identities(3))
	var all []*corev1.Pod
	for i := range 5 {
		all = append(all, r.pod(fmt.Sprint("pod-", i), "a", func(p *corev1.Pod) { p.Labels[clusterview.IdentityGroupLabel] = "g" }))
	}
	r.Compute()
	r.wantHeld(all[2], "")
	r.wantHeld(all[3], `identity group "g" has no identity left, all 3 are held`)
	reserve := func(p *corev1.Pod, want int) {
		t.Helper()
		if id, ok := r.reserve(p); id != want || ok != (want >= 0) {
			t.Errorf("%s has %d, %t, want %d", p.Name, id, ok, want)
		}
	}
	for i := range 3 {
		reserve(all[i], i)
	}
	reserve(all[3], -1)
	r.Unreserve(all[1])
	reserve(all[3], 1)
	for i, id := range map[int]string{0: "0", 2: "2", 3: "1"} {
		r.bind(all[i], map[string]string{clusterview.IdentityAnnotation: id})
	}
	r.Compute()
	if len(r.reserved) != 0 {
		t.Errorf("%d pods are still being bound", len(r.reserved))
	}
	r.wantHeld(all[4], `all 3 are held`)
	must(r.t, r.pods.Delete(all[2]))
	r.Compute()
	reserve(all[1], 2)
}

// Of a group that the order does not have yet it is not known who holds its numbers, as after its allocation was deleted and made anew. A pod
// that has been let in before gets none until then.
func TestNumbersOfAnAllocationThatIsMadeAnew(t *testing.T) {
	r := newRig(t)
	in := func(p *corev1.Pod) { p.Labels[clusterview.IdentityGroupLabel] = "g" }
	r.bind(r.pod("runs", "a", in), map[string]string{clusterview.IdentityAnnotation: "0"})
	waits := r.pod("waits", "a", in)
	r.Compute()
	r.allocation("a", identities(2))
	for _, want := range []int{-1, 1} {
		if id, ok := r.reserve(waits); id != want || ok != (want >= 0) {
			t.Errorf("it has %d, %t, want %d", id, ok, want)
		}
		r.Compute()
	}
}

// A simulation computes no order. Its pods are given numbers all the same.
func TestNumbersInASimulation(t *testing.T) {
	r := newRig(t)
	r.allocation("a", identities(1))
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	simulated := Fixed(factory, "ours", func(map[string]*corev1.Pod) {}, valuesOf(r.partitions), valuesOf(r.allocations))
	pod := r.pod("pod", "a", func(p *corev1.Pod) { p.Labels[clusterview.IdentityGroupLabel] = "g" })
	if id, ok := simulated.Reserve(pod, simulated.claims, r.allocations["a"]); id != 0 || !ok {
		t.Errorf("it has %d, %t", id, ok)
	}
}

// A pod that found no place is tried again when other pods run after it, which may make way: and not otherwise.
func TestTriedAgain(t *testing.T) {
	r := newRig(t)
	r.allocation("rich", reserving(9))
	r.allocation("poor")
	waits := r.pod("waits", "rich")
	r.bind(r.pod("runs", "poor"), nil)
	r.Compute()
	r.woken = nil
	r.foundNoPlace(waits)
	r.computes()
	r.bind(r.pod("more", "poor"), nil)
	r.computes("waits")
	r.foundNoPlace(waits)
	r.computes()
	r.Retry(waits)
	r.computes("waits")
}

// One who found no place is tried again when what is reserved is different: others may come after it now.
func TestTriedAgainWhenReservationsChange(t *testing.T) {
	r := newRig(t)
	r.allocation("late", reserving(1))
	r.allocation("runs", reserving(9))
	r.bind(r.pod("runs", "runs"), nil)
	waits := r.pod("waits", "late")
	r.Compute()
	r.take(waits)
	r.foundNoPlace(waits)
	r.Compute()
	r.woken = nil
	r.allocation("late", reserving(50))
	r.computes("waits")
}

// However many pods before it are tried again in vain, whoever may have others make way is tried again, though nothing else changes.
func TestTriedAgainAfterVeryMany(t *testing.T) {
	r := newRig(t)
	r.allocation("rich", reserving(1000))
	r.allocation("poor")
	all := r.podsOf("rich", 2*windowSize+10)
	r.Compute()
	inVain := func() {
		for _, p := range all {
			if slices.Contains(r.woken, p.Name) {
				r.foundNoPlace(p)
			}
		}
		r.woken = nil
	}
	for _, p := range all {
		r.woken = append(r.woken, p.Name)
	}
	inVain()
	r.bind(r.pod("runs", "poor"), nil)
	r.dirty()
	woken := make(map[string]bool)
	for len(r.changed) > 0 {
		<-r.changed
		r.Compute()
		for _, name := range r.woken {
			woken[name] = true
		}
		inVain()
	}
	if len(woken) != len(all) {
		t.Errorf("%d of %d pods were tried again", len(woken), len(all))
	}
}

// Nor is one left behind whose allocation is gone, or whose Partition has other nodes.
func TestTriedAgainWhenItIsOfNone(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"no allocation": func(r *rig) { r.gone("a") },
		"other nodes": func(r *rig) {
			p := &placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			p.Spec.NodeSelector.MatchLabels = map[string]string{"pool": "other"}
			r.seen(p)
		},
		"another namespace": func(r *rig) {
			r.namespaceChanged(&corev1.Namespace{}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.allocation("a")
			waits := r.pod("waits", "a")
			r.admit(waits)
			r.computes("waits")
			r.take(waits)
			r.computes()
			r.namespaceChanged(nil, &corev1.Namespace{})
			r.computes() // the namespace has nothing to do with it
			change(r)
			r.computes("waits")
		})
	}
}

// One who was tried is tried again when a node is open to an allocation that was not. Any other change of nodes leaves it alone.
func TestTriedAgainWhenANodeOpens(t *testing.T) {
	node := func(labels ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new", Labels: map[string]string{}}}
		for i := 0; i < len(labels); i += 2 {
			n.Labels[labels[i]] = labels[i+1]
		}
		return n
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Node
		woken         []string
	}{
		"it comes":                   {nil, node("pool", "p", "disk", "ssd"), []string{"waits"}},
		"it comes without the trait": {nil, node("pool", "p"), nil},
		"it gets the trait":          {node("pool", "p"), node("pool", "p", "disk", "ssd"), []string{"waits"}},
		"it joins the partition":     {node("disk", "ssd"), node("pool", "p", "disk", "ssd"), []string{"waits"}},
		"it gets another label":      {node("pool", "p", "disk", "ssd"), node("pool", "p", "disk", "ssd", "x", "y"), nil},
		"it goes":                    {node("pool", "p", "disk", "ssd"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := &placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			p.Spec.NodeSelector.MatchLabels = map[string]string{"pool": "p"}
			r.seen(p)
			r.allocation("a", func(s *placementv1alpha1.AllocationSpec) { s.Traits = map[string]string{"disk": "ssd"} })
			waits := r.pod("waits", "a")
			r.admit(waits)
			r.computes("waits")
			r.take(waits)
			r.nodeChanged(tc.before, tc.after)
			r.computes(tc.woken...)
		})
	}
}

// Who made way for a pod is known, and where, until the pod has its node, is gone or in no order, or was tried in vain and none of them is there
// any more. As long as one is, their node may be closed for a while.
func TestEvicted(t *testing.T) {
	for name, ends := range map[string]func(r *rig, pod *corev1.Pod){
		"it is placed": func(r *rig, pod *corev1.Pod) { r.reserve(pod) },
		"it is gone":   func(r *rig, pod *corev1.Pod) { r.forget(pod) },
		"they are gone": func(r *rig, _ *corev1.Pod) {
			for _, name := range []string{"near", "far"} {
				must(r.t, r.pods.Delete(r.pod(name, "a")))
			}
			r.Compute()
		},
		"it is in no order any more": func(r *rig, pod *corev1.Pod) {
			must(r.t, r.pods.Delete(pod))
			r.Compute()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.allocation("a")
			pod, near, far := r.pod("pod", "a"), r.pod("near", "a"), r.pod("far", "a")
			near.Spec.NodeName, far.Spec.NodeName = "n", "far"
			r.Compute()
			r.MadeWay(1, pod, "n", []*corev1.Pod{near, far})
			its, waits := r.WaitsFor(pod)
			if !waits || !r.Evicting() || !its.Pods["near"] || !its.Pods["far"] || !slices.Equal(its.Nodes, []string{"n", "far"}) {
				t.Errorf("it waits for %+v, %t", its, waits)
			}
			if !r.HasMadeWay(1, far, pod) || r.HasMadeWay(1, pod, far) || r.HasMadeWay(2, far, pod) {
				t.Error("it is not known who made way for whom")
			}
			r.foundNoPlace(pod, pod)
			r.Compute()
			if _, waits := r.WaitsFor(pod); !waits || !r.Evicting() {
				t.Error("it waits for nobody after it was tried again")
			}
			ends(r, pod)
			if its, waits := r.WaitsFor(pod); waits || r.Evicting() {
				t.Errorf("it waits for %+v, and somebody does: %t", its, r.Evicting())
			}
		})
	}
}

// A pod that was deleted is known as such as long as it may be in the cache.
func TestDeleted(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	pod, other := r.pod("pod", "a"), r.pod("other", "a")
	must(r.t, r.Deleting(pod.UID, func() error { return nil }))
	_ = r.Deleting(other.UID, func() error { return context.Canceled })
	r.Compute()
	if !r.WasDeleted(pod.UID) || r.WasDeleted(other.UID) {
		t.Error("it is not known which pod was deleted")
	}
	must(r.t, r.pods.Delete(pod))
	r.Compute()
	if r.WasDeleted(pod.UID) {
		t.Error("a pod that is gone is remembered")
	}
}
