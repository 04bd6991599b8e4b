// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A resource that no node of the partition has takes no reservation away: one word that is mistyped would have all pods of others leave
// first. Nor does a maximum of it have pods evicted. Where there is no node at all nothing is known, and all counts as before.
func TestAbsentResources(t *testing.T) {
	typo := func(s *spec) {
		s.Reserved, s.MaxUtilizationPercent = corev1.ResourceList{"cpus": resource.MustParse("10")}, new(int32(100))
	}
	having := func(pool, amount string) *corev1.Node {
		n := node("having", pool, "8")
		n.Status.Allocatable["cpus"] = resource.MustParse(amount)
		return n
	}
	for name, tc := range map[string]struct {
		nodes  []*corev1.Node
		within bool
	}{
		"none has it":                 {[]*corev1.Node{node("n", "p", "8")}, true},
		"one of elsewhere has it":     {[]*corev1.Node{node("n", "p", "8"), having("q", "8")}, true},
		"one has it":                  {[]*corev1.Node{node("n", "p", "8"), having("p", "8")}, false},
		"a device plugin is away":     {[]*corev1.Node{node("n", "p", "8"), having("p", "0")}, false},
		"there are no nodes of it":    {[]*corev1.Node{node("n", "q", "8")}, false},
		"there are no nodes any more": {nil, false},
	} {
		o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("prod", "p", reserving("4")), of("typo", "p", typo)}), tc.nodes,
			pod("one", "prod", "1", "n"), pod("other", "typo", "1", "n"))
		q := o.Queues[0]
		for i := range q.Entries {
			e := &q.Entries[i]
			if e.Object.Name == "one" && e.Reserved != tc.within || e.MustNotRun() {
				t.Errorf("%s: %s is within its reservation: %t, and is evicted: %t", name, e.Object.Name, e.Reserved, e.MustNotRun())
			}
		}
		if absent := slices.Equal(q.Absent, []corev1.ResourceName{"cpus"}); absent != tc.within || absent == slices.Contains(q.Resources, "cpus") {
			t.Errorf("%s: the order goes by %v, and lacks %v", name, q.Resources, q.Absent)
		}
	}
	o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("typo", "p", typo)}), []*corev1.Node{node("n", "p", "8")}, pod("other", "typo", "1", "n"))
	if q := o.Queues[0]; len(q.Resources) != 2 || q.Entries[0].MustNotRun() {
		t.Errorf("where nothing else is reserved the order goes by %v, and the pod is evicted: %t", q.Resources, q.Entries[0].MustNotRun())
	}
}

// A maximum holds for a resource that no node has yet: no more nodes are made for those that wait than may run, and nobody is evicted when the
// first has come.
func TestMaximumOfAbsentResources(t *testing.T) {
	const gpu = "example.com/gpu"
	wants := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1") }
	tree := NewTree([]*Partition{partition("p", "p")}, []*Allocation{of("prod", "p", reserving("4")), of("ml", "p", func(s *spec) {
		s.Reserved, s.MaxUtilizationPercent = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), gpu: resource.MustParse("2")}, new(int32(100))
	})})
	pods := []*corev1.Pod{pod("g1", "ml", "1", "", wants), pod("g2", "ml", "1", "", wants), pod("g3", "ml", "1", "", wants)}
	last := arrange(tree, []*corev1.Node{node("n", "p", "8")}, pods...)
	for _, o := range []*Order{last, claims(tree).Arrange(Cluster{
		Nodes: []*corev1.Node{node("n", "p", "8")}, Pods: pods, Schedules: func(string) bool { return true }, Last: last,
	})} {
		if len(o.Queues[0].Absent) != 1 {
			t.Fatalf("%v are absent", o.Queues[0].Absent)
		}
		for i, capped := range []bool{false, false, true} {
			if why := (Place{o.Queues[0], i}).Why(); (why != nil) != capped {
				t.Errorf("position %d: %v", i+1, why)
			}
		}
	}
}
