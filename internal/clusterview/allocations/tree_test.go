// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

type spec = placementv1alpha1.AllocationSpec

// What is wrong has the reason of a condition, and a message that names the thing, the value and the mend. Allocations beside it are
// accepted.
func TestBadInput(t *testing.T) {
	quantity := func(text string) func(*spec) {
		return func(s *spec) { s.Reserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)} }
	}
	selector := func(s *spec) {
		s.Assignments[0].PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}
	}
	for name, tc := range map[string]struct {
		all    []*Allocation
		reason string
		parts  []string
	}{
		"a cycle": {
			[]*Allocation{of("bad", "", below("mid")), of("mid", "", below("low")), of("low", "", below("bad"))},
			placementv1alpha1.ReasonParentCycle, []string{"bad, mid, low, bad", "another parent"},
		},
		"its own parent": {[]*Allocation{of("bad", "", below("bad"))}, placementv1alpha1.ReasonParentCycle, []string{"bad, bad"}},
		"below a cycle": {
			[]*Allocation{of("bad", "", below("mid")), of("mid", "", below("low")), of("low", "", below("mid"))},
			placementv1alpha1.ReasonParentCycle, []string{"mid, low, mid"},
		},
		"no parent":    {[]*Allocation{of("bad", "", below("gone"))}, placementv1alpha1.ReasonParentMissing, []string{`"gone"`, "make it"}},
		"no partition": {[]*Allocation{of("bad", "gone")}, placementv1alpha1.ReasonPartitionMissing, []string{`"gone"`, "make it"}},
		"the parent is bad": {
			[]*Allocation{of("top", "gone"), of("bad", "", below("top"))}, placementv1alpha1.ReasonParentNotAccepted, []string{`"top"`, "condition Accepted"},
		},
		"another partition": {
			[]*Allocation{of("top", "p"), of("bad", "", below("top"), func(s *spec) { s.Partition = "other" })},
			placementv1alpha1.ReasonPartitionMismatch, []string{`"other"`, `"top"`, `"p"`},
		},
		"negative":   {[]*Allocation{of("bad", "p", quantity("-1Gi"))}, placementv1alpha1.ReasonInvalid, []string{"spec.reserved[memory]", "-1Gi", "negative"}},
		"overflow":   {[]*Allocation{of("bad", "p", quantity("9999999999E"))}, placementv1alpha1.ReasonInvalid, []string{"spec.reserved[memory]", "at most"}},
		"a selector": {[]*Allocation{of("bad", "p", selector)}, placementv1alpha1.ReasonInvalid, []string{"spec.assignments[0].podSelector", "Like"}},
		"a priority": {
			[]*Allocation{of("bad", "p", func(s *spec) { s.Assignments[0].Priority = new(int32(101)) })},
			placementv1alpha1.ReasonInvalid, []string{"spec.assignments[0].priority", "101", "from 0 to 100"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := NewTree([]*Partition{partition("p", "p"), partition("other", "other")}, append(tc.all, of("good", "p")))
			for _, a := range tree.Allocations {
				_, reason, err := tree.PartitionOf(a)
				switch a.Name {
				case "good":
					if err != nil {
						t.Errorf("the one beside it: %v", err)
					}
				case "bad":
					if err == nil || reason != tc.reason {
						t.Fatalf("got %s, %v, want %s", reason, err, tc.reason)
					}
					for _, part := range tc.parts {
						if !strings.Contains(err.Error(), part) {
							t.Errorf("the message does not say %q: %v", part, err)
						}
					}
				}
			}
			// Its pods wait, those that run are in no order, and others go on.
			o := arrange(tree, []*corev1.Node{node("n", "p", "4")}, pod("runs", "bad", "1", "n"), pod("waits", "bad", "1", ""), pod("other", "good", "1", ""))
			if o.Held["runs"] == nil || o.Held["waits"] == nil {
				t.Errorf("its pods are not held: %v", o.Held)
			}
			wantOrder(t, o, "p", "other")
		})
	}
}

// Large clusters have more than 1 PiB of memory, and of storage.
func TestMuchIsReserved(t *testing.T) {
	much := of("a", "p", func(s *spec) {
		s.Reserved = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("40Pi"), corev1.ResourceEphemeralStorage: resource.MustParse("500Pi")}
	})
	if err := much.Invalid(); err != nil {
		t.Error(err)
	}
}

// A Partition that cannot be read has no nodes, and its allocations are not accepted.
func TestBadPartition(t *testing.T) {
	bad := partition("bad", "p", func(s *placementv1alpha1.PartitionSpec) {
		s.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "pool", Operator: "Like"}}
	})
	good := partition("good", "p")
	tree := NewTree([]*Partition{bad, good}, []*Allocation{of("a", "bad")})
	if _, reason, err := tree.PartitionOf(tree.Allocations[0]); err == nil || reason != placementv1alpha1.ReasonPartitionMissing {
		t.Errorf("got %s, %v", reason, err)
	}
	if got := tree.PartitionOfNode(node("n", "p", "1")); got != good {
		t.Errorf("the node is of %v", got)
	}
}

func TestNodes(t *testing.T) {
	first, second := partition("z", "shared"), partition("a", "shared")
	top := of("top", "z", func(s *spec) { s.Traits = map[string]string{"disk": "ssd"} })
	low := of("low", "", below("top"), func(s *spec) { s.Traits = map[string]string{"gpu": "yes"} })
	tree := NewTree([]*Partition{second, first}, []*Allocation{low, top})
	plain, ssd, both, elsewhere := node("plain", "shared", "1"), node("ssd", "shared", "1", "disk", "ssd"), node("both", "shared", "1", "disk", "ssd", "gpu", "yes"), node("e", "e", "1", "disk", "ssd")
	if got := tree.PartitionOfNode(plain); got != first {
		t.Errorf("a node that two select is of %s, and not of the older", got.Name)
	}
	for n, want := range map[*corev1.Node][2]bool{plain: {false, false}, ssd: {true, false}, both: {true, true}, elsewhere: {false, false}} {
		if got := [2]bool{tree.Allows(top, n), tree.Allows(low, n)}; got != want {
			t.Errorf("node %s is allowed to the two: %v, want %v", n.Name, got, want)
		}
	}
	under := of("under", "", below("low"))
	others := NewTree([]*Partition{first}, []*Allocation{top, low, under, of("plain", "z"), of("also", "z")})
	for _, a := range others.Allocations {
		for _, b := range others.Allocations {
			same := true
			for _, n := range []*corev1.Node{plain, ssd, both, elsewhere} {
				same = same && others.Allows(a, n) == others.Allows(b, n)
			}
			if got := others.NodesKey(a) == others.NodesKey(b); got != same {
				t.Errorf("the nodes of %s and of %s are named %q and %q, and are the same: %t", a.Name, b.Name, others.NodesKey(a), others.NodesKey(b), same)
			}
		}
	}
	if shared := tree.SharedNodes(first, []*corev1.Node{plain, ssd, elsewhere}); len(shared) != 1 || shared["a"] != 2 {
		t.Errorf("it shares %v", shared)
	}
}
