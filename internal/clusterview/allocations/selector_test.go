// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

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
