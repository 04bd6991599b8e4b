// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
)

// The oldest allocation that claims a pod has it, the first assignment says its priority, and the pod's own word comes before.
func TestClaims(t *testing.T) {
	select1 := func(key string) func(*spec) {
		return func(s *spec) {
			s.Assignments = []placementv1alpha1.Assignment{
				{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "yes"}}, NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "ns"}}, Priority: new(int32(9))},
				{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "yes"}}, Priority: new(int32(3))},
			}
		}
	}
	first, second := of("first", "p", select1("a")), of("second", "p", select1("b"))
	c := claims(NewTree([]*Partition{partition("p", "p")}, []*Allocation{second, first}))
	labelled := func(keys ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, key := range keys {
				p.Labels[key] = "yes"
			}
		}
	}
	both := pod("both", "x", "1", "", labelled("a", "b"))
	if claim, known := c.Of(both); !known || claim.Allocation != first || claim.Priority != 9 || len(claim.Rivals) != 1 || claim.Rivals[0] != second {
		t.Errorf("got %+v, %t", claim, known)
	}
	far := pod("far", "x", "1", "", labelled("b"), func(p *corev1.Pod) { p.Namespace = "far" })
	if claim, _ := c.Of(far); claim.Allocation != second || claim.Priority != 3 {
		t.Errorf("got %+v", claim)
	}
	if claim, known := c.Of(pod("none", "x", "1", "")); !known || claim.Allocation != nil {
		t.Errorf("got %+v, %t", claim, known)
	}
	if _, known := c.Of(pod("u", "x", "1", "", func(p *corev1.Pod) { p.Namespace = "unknown" })); known {
		t.Error("it is known what a pod of an unknown namespace is of")
	}
	for name, exempt := range map[string]func(*corev1.Pod){
		"of a DaemonSet": func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", Controller: new(true)}}
		},
		"critical": func(p *corev1.Pod) { p.Spec.Priority = new(int32(systemCritical)) },
	} {
		if claim, known := c.Of(pod("e", "x", "1", "", labelled("a"), exempt)); !known || claim.Allocation != nil {
			t.Errorf("%s: got %+v, %t", name, claim, known)
		}
	}
	o := arrange(c.Tree, nil, both)
	in := func(p *corev1.Pod) { p.Labels["env"] = "prod" }
	several := of("several", "p", func(s *spec) {
		s.Assignments[0].PodSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "env", Operator: metav1.LabelSelectorOpIn, Values: []string{"prod", "test"}}, {Key: "a", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
	})
	c = claims(NewTree([]*Partition{partition("p", "p")}, []*Allocation{several, second, first}))
	if claim, _ := c.Of(pod("in", "x", "1", "", in, labelled("b"))); claim.Allocation != second || len(claim.Rivals) != 1 || claim.Rivals[0] != several {
		t.Errorf("got %+v", claim)
	}
	if claim, _ := c.Of(pod("out", "x", "1", "", in, labelled("a"))); claim.Allocation != first || len(claim.Rivals) != 0 {
		t.Errorf("got %+v", claim)
	}
	if o.Rivals[first][second] != 1 || o.Rivals[second][first] != 1 {
		t.Errorf("the rivals are %v", o.Rivals)
	}
}

// What a pod says of itself that cannot be read holds it, and nobody else. If it runs it is ordered as if it had not said it.
func TestHeldPods(t *testing.T) {
	in := partition("p", "p", func(s *placementv1alpha1.PartitionSpec) {
		s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "ns"}}
		s.MaxLeaseSeconds = new(int64(3600))
	})
	tree := NewTree([]*Partition{in}, []*Allocation{of("a", "p", identities("g", 1))})
	annotated := func(priority string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[clusterview.AllocationPriorityAnnotation] = priority }
	}
	o := arrange(tree, nil,
		pod("text", "a", "1", "", annotated("high")), pod("large", "a", "1", "", annotated("101")), pod("held", "a", "1", "", annotated("-1")),
		pod("runs", "a", "1", "n", annotated("-1")), pod("runs-on", "a", "1", "n", func(p *corev1.Pod) {
			p.Labels[clusterview.IdentityGroupLabel], p.Annotations[clusterview.LeaseAnnotation] = "x", "1000h"
		}),
		pod("group", "a", "1", "", func(p *corev1.Pod) { p.Labels[clusterview.IdentityGroupLabel] = "x" }),
		pod("far", "a", "1", "", func(p *corev1.Pod) { p.Namespace = "far" }),
		pod("lease", "a", "1", "", func(p *corev1.Pod) { p.Annotations[clusterview.LeaseAnnotation] = "61m" }),
		pod("short", "a", "1", "", annotated("6"), func(p *corev1.Pod) { p.Annotations[clusterview.LeaseAnnotation] = "60m" }),
		pod("good", "a", "1", "", annotated("7")))
	wantOrder(t, o, "p", "good", "short", "runs", "runs-on")
	for name, part := range map[string]string{"text": `"high"`, "large": `"101"`, "held": `"-1"`, "group": `"x"`, "far": `"far"`, "lease": "1h1m0s"} {
		var got string
		for uid, err := range o.Held {
			if string(uid) == name {
				got = err.Error()
			}
		}
		if !strings.Contains(got, part) {
			t.Errorf("%s is held for %q, which does not say %s", name, got, part)
		}
	}
}

// TV8 with objects: the environments come one after the other within their reservations, and all that is beyond comes last.
func TestVector_TV8_Objects(t *testing.T) {
	var all []*Allocation
	var pods []*corev1.Pod
	for i, env := range []string{"prod", "uat", "qa", "dev"} {
		all = append(all, of(env, "p", reserving("4"), func(s *spec) { s.RankAdjustment = new(int32(3 - i)) }))
		for n := range 3 {
			pods = append(pods, pod(fmt.Sprint(env, n+1), env, "2", ""))
		}
	}
	o := arrange(NewTree([]*Partition{partition("p", "p")}, all), []*corev1.Node{node("n1", "p", "20"), node("n2", "p", "20"), node("other", "q", "99")}, pods...)
	wantOrder(t, o, "p", "prod1", "prod2", "uat1", "uat2", "qa1", "qa2", "dev1", "dev2", "prod3", "uat3", "qa3", "dev3")
	q := o.Queues[0]
	if q.Nodes != 2 || q.Size[0] != 40_000 || q.Reserved[0] != 16_000 || len(q.Resources) != 1 {
		t.Errorf("the queue has %d nodes, size %v and reserves %v of %v", q.Nodes, q.Size, q.Reserved, q.Resources)
	}
	place, ok := o.Place(pods[2])
	if want := `position 9 of 12 in partition "p", allocation "prod"`; !ok || place.String() != want {
		t.Errorf("got %s, %t, want %s", place, ok, want)
	}
}

// Which pods are in line, and which not.
func TestInLine(t *testing.T) {
	now := metav1.Now()
	a := of("a", "p")
	tree := NewTree([]*Partition{partition("p", "p")}, []*Allocation{a})
	o := arrange(tree, nil,
		pod("waits", "a", "1", ""), pod("runs", "a", "1", "n"),
		pod("leaves", "a", "1", "n", func(p *corev1.Pod) { p.DeletionTimestamp = &now }),
		pod("done", "a", "1", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("failed", "a", "1", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("others", "a", "1", "n", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }))
	wantOrder(t, o, "p", "runs", "waits")
}

// Of pods that run, those that were placed first come first, whenever they were made: nobody who runs is moved back by another one that is
// placed.
func TestPlacedInTheirOrder(t *testing.T) {
	scheduled := func(after time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(begin.Add(after))}}
		}
	}
	old, young, binding := pod("old", "a", "1", "n", scheduled(time.Hour)), pod("young", "a", "1", "n", scheduled(time.Minute)), pod("binding", "a", "1", "")
	o := claims(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p")})).Arrange(Cluster{
		Pods: []*corev1.Pod{old, binding, young, pod("waits", "a", "1", "")}, Schedules: func(string) bool { return true },
		Placed: func(p *corev1.Pod) bool { return p == binding },
	})
	wantOrder(t, o, "p", "young", "old", "binding", "waits")
}

// TV23 with objects: as many wait for a number as there are numbers, and who holds one that there is not any more must not run.
func TestVector_TV23_Objects(t *testing.T) {
	in := func(id string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels[clusterview.IdentityGroupLabel] = "g"
			if id != "" {
				p.Annotations[clusterview.IdentityAnnotation] = id
			}
		}
	}
	now := metav1.Now()
	o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p", identities("g", 4))}), nil,
		pod("zero", "a", "1", "n", in("0")), pod("zero-again", "a", "1", "n", in("0")), pod("beyond", "a", "1", "n", in("4")), pod("before", "a", "1", "n", in("")),
		pod("leaves", "a", "1", "n", in("1"), func(p *corev1.Pod) { p.DeletionTimestamp = &now }),
		pod("w1", "a", "1", "", in("")), pod("w2", "a", "1", "", in("0")), pod("w3", "a", "1", "", in("")))
	for name, want := range map[string][2]bool{
		"zero": {false, false}, "zero-again": {false, true}, "beyond": {false, true}, "before": {false, false},
		"w1": {false, false}, "w2": {false, false}, "w3": {true, false}, // 2 and 3 are free
	} {
		for i := range o.Queues[0].Entries {
			e := &o.Queues[0].Entries[i]
			if e.Object.Name != name {
				continue
			}
			standsBy := e.Class == allocation.StandsBy
			if got := [2]bool{standsBy, e.Surplus}; got != want {
				t.Errorf("%s stands by and is surplus: %v, want %v", name, got, want)
			}
			why := Place{o.Queues[0], i}.Why()
			if standsBy != (why != nil) || why != nil && !strings.Contains(why.Error(), `identity group "g" has no identity left, all 4 are held`) {
				t.Errorf("%s: %v", name, why)
			}
		}
	}
}

// To reserve none of a resource is to leave it out. Otherwise nobody else of the partition would be within a reservation any more.
func TestNoneIsReserved(t *testing.T) {
	none := func(s *spec) {
		s.Reserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("0"), "example.com/gpu": resource.MustParse("0")}
	}
	o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("prod", "p", reserving("4")), of("none", "p", none)}),
		[]*corev1.Node{node("n", "p", "8")}, pod("one", "prod", "1", ""))
	if q := o.Queues[0]; len(q.Resources) != 1 || !q.Entries[0].Reserved {
		t.Errorf("%v are reserved, and the pod is within its reservation: %t", q.Resources, q.Entries[0].Reserved)
	}
}

// Whoever is about to be bound has a number that nobody sees yet. Another pod that was let in for it would have others make way in vain.
func TestNumbersOfPodsThatAreBeingBound(t *testing.T) {
	a := of("a", "p", identities("g", 2))
	in := func(p *corev1.Pod) { p.Labels[clusterview.IdentityGroupLabel] = "g" }
	first, second, third := pod("first", "a", "1", "", in), pod("second", "a", "1", "", in), pod("third", "a", "1", "", in)
	for binding, want := range map[string]bool{"": false, "first": false, "third": true, "first third": true} {
		o := claims(NewTree([]*Partition{partition("p", "p")}, []*Allocation{a})).Arrange(Cluster{
			Pods: []*corev1.Pod{first, second, third}, Schedules: func(string) bool { return true },
			Placed: func(p *corev1.Pod) bool { return strings.Contains(binding, p.Name) },
		})
		at, _ := o.Place(second)
		if why := at.Why(); (why != nil) != want {
			t.Errorf("while %q are bound: %v", binding, why)
		}
	}
}

// A bound of more seconds than a duration holds is neither none nor one of a moment.
func TestMaxLeaseOfMoreThanADurationHolds(t *testing.T) {
	for _, seconds := range []int64{math.MaxInt64, 10_000_000_000, 18_446_744_074} {
		if p := partition("p", "p", func(s *placementv1alpha1.PartitionSpec) { s.MaxLeaseSeconds = &seconds }); p.MaxLease < 100*365*24*time.Hour {
			t.Errorf("%d s are read as %s", seconds, p.MaxLease)
		}
	}
}

// A pod with gates wants nothing yet: those that run are not beyond the maximum because of it, though it would come before them.
func TestGatedPodsWantNothing(t *testing.T) {
	gated := pod("gated", "a", "1", "", func(p *corev1.Pod) {
		p.Annotations[clusterview.AllocationPriorityAnnotation] = "100"
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}}
	})
	tree := NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p", reserving("1"), capped(100))})
	o := arrange(tree, nil, pod("runs", "a", "1", "n"), gated)
	wantOrder(t, o, "p", "runs")
	if e := &o.Queues[0].Entries[0]; e.MustNotRun() {
		t.Error("the pod that runs is evicted for it")
	}
	ungated := gated.DeepCopy()
	ungated.Spec.SchedulingGates = nil
	if SaysTheSame(gated, ungated) {
		t.Error("it is not looked at again without its gates")
	}
}

// A group's pods that stand by take nothing from the others of their allocation, nor does what they request when the order is computed again.
func TestStandBysWantNothing(t *testing.T) {
	tree := func() *Claims {
		age = 1000
		return claims(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p", reserving("10"), identities("shards", 3), capped(100), func(s *spec) { s.RankAdjustment = new(int32(3)) }), of("b", "p", reserving("1"))}))
	}
	in := func(p *corev1.Pod) {
		p.Labels[clusterview.IdentityGroupLabel], p.Annotations[clusterview.AllocationPriorityAnnotation] = "shards", "50"
	}
	cluster := Cluster{Nodes: []*corev1.Node{node("n", "p", "20")}, Schedules: func(string) bool { return true }}
	var want []string
	for i := range 8 {
		name := fmt.Sprint("shard", i)
		if want = append(want, name); i < 3 {
			cluster.Pods = append(cluster.Pods, pod(name, "a", "1", "n", in, func(p *corev1.Pod) { p.Annotations[clusterview.IdentityAnnotation] = strconv.Itoa(i) }))
		} else {
			cluster.Pods = append(cluster.Pods, pod(name, "a", "1", "", in))
		}
	}
	for i := range 7 {
		cluster.Pods = append(cluster.Pods, pod(fmt.Sprint("web", i), "a", "1", ""))
	}
	cluster.Pods = append(cluster.Pods, pod("b", "b", "1", "n"))
	want = slices.Concat(want[:3], []string{"web0", "web1", "web2", "web3", "web4", "web5", "web6", "b"}, want[3:])
	for range 2 {
		cluster.Last = tree().Arrange(cluster)
		wantOrder(t, cluster.Last, "p", want...)
		for i := range 10 {
			if e := &cluster.Last.Queues[0].Entries[i]; !e.Reserved || e.Rank != 97 || (Place{cluster.Last.Queues[0], i}).Why() != nil {
				t.Errorf("%s is reserved: %t, and of rank %d", e.Object.Name, e.Reserved, e.Rank)
			}
		}
	}
	cluster.Pods = slices.Delete(cluster.Pods, 1, 2)
	if at, _ := tree().Arrange(cluster).Place(cluster.Pods[2]); at.Index != 2 || at.Entry().After <= at.Entry().Before {
		t.Errorf("the one that takes the place of one that is gone is at %s", at)
	}
}

func TestCapped(t *testing.T) {
	o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p", reserving("2"), capped(150))}), nil,
		pod("a1", "a", "2", "n"), pod("a2", "a", "1", ""), pod("a3", "a", "1", ""), pod("a4", "a", "1", "n"),
		pod("never", "a", "4", "", func(p *corev1.Pod) { p.Annotations[clusterview.AllocationPriorityAnnotation] = "100" }))
	// a4 runs, and so comes before those that wait. The one that is too large for the maximum changes nothing for those that run.
	wantOrder(t, o, "p", "a1", "a4", "never", "a2", "a3")
	for i, capped := range []bool{false, false, true, true, true} {
		e := &o.Queues[0].Entries[i]
		if e.Class == allocation.Capped != capped || (Place{o.Queues[0], i}.Why() != nil) != capped {
			t.Errorf("%s is capped: %t", e.Object.Name, !capped)
		}
	}
}

// An earlier order saves work, and changes nothing: a pod that was resized is another object, and other resources are other amounts.
func TestAfterAnEarlierOrder(t *testing.T) {
	age = 1000
	tree := func(reserved corev1.ResourceName) *Claims {
		return claims(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p", func(s *spec) {
			s.Reserved = corev1.ResourceList{reserved: resource.MustParse("4")}
		})}))
	}
	x, y := pod("x", "a", "1", ""), pod("y", "a", "3", "")
	resized := y.DeepCopy()
	resized.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	cluster := Cluster{Pods: []*corev1.Pod{x, y}, Schedules: func(string) bool { return true }}
	last := tree(corev1.ResourceCPU).Arrange(cluster)
	for name, now := range map[string]struct {
		reserved corev1.ResourceName
		pods     []*corev1.Pod
	}{
		"all is the same":        {corev1.ResourceCPU, []*corev1.Pod{x, y}},
		"one is resized":         {corev1.ResourceCPU, []*corev1.Pod{x, resized}},
		"one is gone":            {corev1.ResourceCPU, []*corev1.Pod{y}},
		"pods come otherwise":    {corev1.ResourceCPU, []*corev1.Pod{y, x}},
		"others are in front":    {corev1.ResourceCPU, []*corev1.Pod{pod("z", "a", "1", ""), y, x}},
		"something else is kept": {corev1.ResourceMemory, []*corev1.Pod{x, y}},
	} {
		cluster.Pods, cluster.Last = now.pods, nil
		want := tree(now.reserved).Arrange(cluster)
		cluster.Last = last
		got := tree(now.reserved).Arrange(cluster)
		if a, b := got.Queues[0], want.Queues[0]; a.Stamp != b.Stamp || len(a.Entries) != len(now.pods) {
			t.Errorf("%s: %d pods with stamp %d, want %d with %d", name, len(a.Entries), a.Stamp, len(now.pods), b.Stamp)
		}
		for i := range want.Queues[0].Entries {
			if a, b := got.Queues[0].Entries[i], want.Queues[0].Entries[i]; a.Object != b.Object || !slices.Equal(a.Pod.Demand, b.Pod.Demand) || a.Pod.Key != b.Pod.Key || a.After != b.After {
				t.Errorf("%s: position %d is %+v, want %+v", name, i, a, b)
			}
		}
	}
}

// The stamp is another one if what is wanted, reserved or there is, and not if other pods have their places.
func TestStamp(t *testing.T) {
	tree := func(cpu string) *Tree {
		age = 1000
		return NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p", reserving(cpu)), of("b", "p")})
	}
	stamp := func(reserved, size string, pods ...*corev1.Pod) uint64 {
		return arrange(tree(reserved), []*corev1.Node{node("n", "p", size)}, pods...).Queues[0].Stamp
	}
	was := stamp("1", "4", pod("x", "a", "1", "n"), pod("y", "b", "2", ""))
	if got := stamp("1", "4", pod("y2", "b", "2", "n"), pod("x2", "a", "1", "")); got != was {
		t.Error("it is another one after two pods have changed places")
	}
	for name, got := range map[string]uint64{
		"demand":      stamp("1", "4", pod("x", "a", "1", "n"), pod("y", "b", "3", "")),
		"a pod":       stamp("1", "4", pod("x", "a", "1", "n")),
		"reservation": stamp("2", "4", pod("x", "a", "1", "n"), pod("y", "b", "2", "")),
		"capacity":    stamp("1", "5", pod("x", "a", "1", "n"), pod("y", "b", "2", "")),
	} {
		if got == was {
			t.Errorf("it is the same after a change of %s", name)
		}
	}
}

// A pod of priority 0 in an allocation with a maximum is told that it never runs, and not that others are in its way.
func TestPriority0WithAMaximum(t *testing.T) {
	o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("a", "p", reserving("2"), capped(100))}), nil,
		pod("zero", "a", "1", "", func(p *corev1.Pod) { p.Annotations[clusterview.AllocationPriorityAnnotation] = "0" }))
	const want = `no pod of priority 0 runs in allocation "a", which has a maxUtilizationPercent: give it a priority of 1 or more: position 1 of 1 in partition "p", allocation "a"`
	if err := (Place{o.Queues[0], 0}).Why(); err == nil || err.Error() != want {
		t.Errorf("it waits for %v", err)
	}
}
