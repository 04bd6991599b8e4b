// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
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
	// A field that cannot be decoded is named, and another allocation that claims its pods does not have them.
	undecodable := func(field string, value any) []*Allocation {
		return []*Allocation{DecodeAllocation(rawAllocation(field, value)), of("rival", "p", claimsAll)}
	}
	for name, tc := range map[string]struct {
		all    []*Allocation
		reason string
		parts  []string
	}{
		"a rank that is none":      {undecodable("rank", "first"), placementv1alpha1.ReasonInvalid, []string{"spec.rank: it cannot be decoded", "apply the CRD"}},
		"a parent that is none":    {undecodable("parent", map[string]any{}), placementv1alpha1.ReasonInvalid, []string{"spec.parent: it cannot be decoded"}},
		"a partition that is none": {undecodable("partition", []any{"p"}), placementv1alpha1.ReasonInvalid, []string{"spec.partition: it cannot be decoded"}},
		"an amount that is none":   {undecodable("reserved", map[string]any{"cpu": "1e1.5"}), placementv1alpha1.ReasonInvalid, []string{"spec.reserved: ", `"1e1.5" of cpu`, "write one such as"}},
		"an object for an amount":  {undecodable("reserved", map[string]any{"cpu": map[string]any{}}), placementv1alpha1.ReasonInvalid, []string{"spec.reserved: it cannot be decoded"}},
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
					placementtest.WantParts(t, err.Error(), tc.parts...)
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

func labelled(matched map[string]string, expressions ...metav1.LabelSelectorRequirement) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: matched, MatchExpressions: expressions}
}

func team(operator string, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: "team", Operator: metav1.LabelSelectorOperator(operator), Values: values}
}

// The pods of an allocation whose selector cannot be read wait, and those that run go on: they are not of another one that claims them as
// well, whose maximum would evict them. Pods without the labels that it names are not its own.
func TestUnreadableSelectorsFreeNoPods(t *testing.T) {
	for _, tc := range []struct {
		selector metav1.LabelSelector
		claims   []string
	}{
		{labelled(nil, team("in", "a")), []string{"a"}},
		{labelled(nil, team("IN", "a", "b")), []string{"a", "b"}},
		{labelled(nil, team("Like", "a")), []string{"a"}},
		{labelled(nil, team("=")), []string{"a", "b"}},
		{labelled(nil, team("notin", "a")), []string{"b", "none"}},
		{labelled(nil, team("exists")), []string{"a", "b"}},
		{labelled(nil, team("Exists", "a")), []string{"a", "b"}},
		{labelled(nil, team("doesNotExist")), []string{"none"}},
		{labelled(nil, team("In")), []string{"a", "b"}},
		{labelled(nil, team("In", "not a value")), []string{"a", "b"}},
		{labelled(map[string]string{"team": "a "}), []string{"a", "b"}},
		{labelled(map[string]string{"team": "a"}, metav1.LabelSelectorRequirement{Key: "env", Operator: "in", Values: []string{"prod"}}), []string{"a"}},
		{labelled(map[string]string{"team": "b"}, metav1.LabelSelectorRequirement{Key: "env", Operator: "in", Values: []string{"prod"}}), nil},
		{labelled(map[string]string{"not a key": "a"}), nil},
		{labelled(map[string]string{"not a key": "a"}, team("NotIn", "b")), nil},
	} {
		bad := of("bad", "p", func(s *spec) { s.Assignments[0].PodSelector = &tc.selector })
		if bad.Invalid() == nil {
			t.Errorf("%v can be read", tc.selector)
		}
		inProd := func(p *corev1.Pod) { p.Labels["env"] = "prod" }
		o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{bad, of("rival", "p", reserving("1"), claimsAll)}), nil,
			pod("a", "a", "1", "n", inProd), pod("a-waits", "a", "1", "", inProd), pod("b", "b", "1", "n"), pod("b-waits", "b", "1", ""),
			pod("none", "", "1", "n", func(p *corev1.Pod) { delete(p.Labels, "team") }), pod("none-waits", "", "1", "", func(p *corev1.Pod) { delete(p.Labels, "team") }))
		var claimed []string
		for _, name := range []string{"a", "b", "none"} {
			runs, waits := o.held(name), o.held(name+"-waits")
			if runs != waits {
				t.Errorf("%v: %s is held: %t, and what waits beside it: %t", tc.selector, name, runs, waits)
			}
			if runs {
				claimed = append(claimed, name)
			}
		}
		if !slices.Equal(claimed, tc.claims) {
			t.Errorf("%v claims %q, want %q", tc.selector, claimed, tc.claims)
		}
	}
}

// held reports whether a pod is.
func (o *Order) held(name string) bool {
	for uid := range o.Held {
		if string(uid) == name {
			return true
		}
	}
	return false
}

// A selector of namespaces that cannot be read is one of those that have the labels it names.
func TestUnreadableSelectorOfNamespaces(t *testing.T) {
	for _, name := range []string{"ns", "far"} {
		bad := of("bad", "p", func(s *spec) {
			s.Assignments[0] = placementv1alpha1.Assignment{NamespaceSelector: labelled(nil, metav1.LabelSelectorRequirement{Key: "name", Operator: "in", Values: []string{name}})}
		})
		o := arrange(NewTree([]*Partition{partition("p", "p")}, []*Allocation{bad}), nil, pod("x", "x", "1", ""))
		if got, want := o.held("x"), name == "ns"; got != want {
			t.Errorf("a pod of namespace ns is held: %t, where the selector names %s", got, name)
		}
	}
}

func raw(kind string, spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "bad", "uid": "u"}, "spec": spec}}
}

// rawAllocation is one of partition p that claims the pods of team bad. A field is another one.
func rawAllocation(field string, value any) *unstructured.Unstructured {
	labels := map[string]any{"matchLabels": map[string]any{"team": "bad"}}
	spec := map[string]any{"partition": "p", "assignments": []any{map[string]any{"namespaceSelector": map[string]any{}, "podSelector": labels}}}
	spec[field] = value
	return raw("Allocation", spec)
}

// What another version of the kind has left is said, and stops nobody else.
func TestUndecodable(t *testing.T) {
	p := DecodePartition(raw("Partition", map[string]any{"reservablePercent": "many"}))
	a := DecodeAllocation(raw("Allocation", map[string]any{"rank": "first"}))
	if p.Name != "bad" || p.Invalid() == nil || !strings.Contains(p.Invalid().Error(), "spec.reservablePercent: it cannot be decoded") {
		t.Errorf("got %v, %v", p.Name, p.Invalid())
	}
	tree := NewTree([]*Partition{p, partition("p", "p")}, []*Allocation{a})
	if _, _, err := tree.PartitionOf(a); a.Name != "bad" || err == nil {
		t.Errorf("got %v, %v", a.Name, err)
	}
	if got := tree.PartitionOfNode(node("n", "p", "1")); got == nil || got.Name != "p" {
		t.Errorf("the node is of %v", got)
	}
	for _, spec := range []any{nil, "none", []any{}, map[string]any{"assignments": "all"}} {
		if a := DecodeAllocation(raw("Allocation", spec)); a.Name != "bad" || a.Invalid() == nil != (spec == nil) {
			t.Errorf("of %v: got %v, %v", spec, a.Name, a.Invalid())
		}
	}
}

// Amounts are looked at before they are decoded: Kubernetes would compute with as many digits as an exponent says. Those here have few
// enough for a test that fails, and no cluster has as much.
func TestAmounts(t *testing.T) {
	good := []any{
		"0", "4", "+4", "-4", "0.5", ".5", "5.", "500m", "100n", "1u", "8Gi", "1.5Gi", "1e6", "1E6", "12e-3", "1e+99", "1e-99", "3k", "3M", "3G", "3T", "3P", "3E", "3Ei",
		strings.Repeat("9", 32), "0." + strings.Repeat("3", 32), int64(4), 4.0, nil,
	}
	bad := []any{
		"1e100", "1E100", "1e-100", "1e+1000000", "1e1000000", "-1e1000000", "1e-1000000", "0e1000000", "1e0000000001", "1e1.5", "1e.5", "1e", "e1", "", " 4", "4 ", "4\n", "Gi", "1gi", "1.2.3", "--1",
		strings.Repeat("9", 33), "0." + strings.Repeat("3", 33), "x" + strings.Repeat("9", 100_000),
	}
	for i, value := range append(good, bad...) {
		a := DecodeAllocation(rawAllocation("reserved", map[string]any{"cpu": value}))
		said := fmt.Sprint(a.Invalid())
		if refused := strings.Contains(said, "is no amount: write one such as"); refused != (i >= len(good)) || len(said) > 1000 {
			t.Errorf("%.60v: %.1000s", value, said)
		}
	}
}
