// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// prod selects the namespaces that have env=prod.
var prod = labels.Set{"env": "prod"}

// clusterPolicy is one that selects app=web in the namespaces of prod.
func clusterPolicy(name string, mode placementv1alpha1.Mode, levels ...placementv1alpha1.Level) *placementv1alpha1.ClusterPlacementPolicy {
	p := &placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Generation: 1}}
	p.Spec.NamespaceSelector.MatchLabels = prod
	p.Spec.PlacementPolicySpec = placementv1alpha1.PlacementPolicySpec{PodSelector: *matching, Levels: levels, Mode: mode}
	return p
}

// Who runs the cluster has the first word, by overriding, and the last, by a default.
func TestClusterPoliciesComeFirstAndLast(t *testing.T) {
	zone := placementv1alpha1.Level{TopologyKey: "zone"}
	var own, cluster []*clusterview.Policy
	// By priority alone each of the cluster's would be on the other side.
	for mode, priority := range map[placementv1alpha1.Mode]int32{placementv1alpha1.ModeDefault: 8, placementv1alpha1.ModeOverride: 6} {
		one := policy("own-"+string(mode), 0, zone)
		one.Spec.Mode, one.Spec.Priority = mode, 7
		own = append(own, clusterview.ReadPolicy(one))
		all := clusterPolicy("cluster-"+string(mode), mode, zone)
		all.Spec.Priority = priority
		cluster = append(cluster, clusterview.ReadClusterPolicy(all))
	}
	for _, list := range [][]*clusterview.Policy{own, cluster} {
		slices.SortFunc(list, (*clusterview.Policy).Compare)
	}
	names := func(namespace labels.Set) string {
		var names []string
		for _, p := range clusterview.Effective(cluster, own, namespace) {
			names = append(names, p.Name)
		}
		return strings.Join(names, " ")
	}
	if got, want := names(prod), "cluster-Override own-Override own-Default cluster-Default"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := names(labels.Set{"env": "test"}), "own-Override own-Default"; got != want {
		t.Errorf("in a namespace that is not selected: got %q, want %q", got, want)
	}
}

// Of those of a namespace and of those of the cluster the first hundred have a say, whatever there is of the others.
func TestEffectiveIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := make([]*clusterview.Policy, rapid.IntRange(0, 2*clusterview.MaxPolicies).Draw(t, "own"))
		for i := range own {
			own[i] = clusterview.ReadPolicy(policy("own", 0))
		}
		cluster := make([]*clusterview.Policy, rapid.IntRange(0, 2*clusterview.MaxPolicies).Draw(t, "cluster"))
		for i := range cluster {
			cluster[i] = clusterview.ReadClusterPolicy(clusterPolicy("cluster", ""))
		}
		got := clusterview.Effective(cluster, own, prod)
		if want := min(len(own), clusterview.MaxPolicies) + min(len(cluster), clusterview.MaxPolicies); len(got) != want {
			t.Fatalf("%d of %d and %d have a say, want %d", len(got), len(own), len(cluster), want)
		}
		if !slices.IsSortedFunc(got, (*clusterview.Policy).Compare) {
			t.Fatal("they are in no order")
		}
	})
}

// A policy whose selector of namespaces cannot be read is for none: pods of all namespaces would wait otherwise.
func TestUnreadableNamespaceSelector(t *testing.T) {
	in := clusterPolicy("p", placementv1alpha1.ModeOverride, placementv1alpha1.Level{TopologyKey: "zone"})
	in.Spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Is"}}
	p := clusterview.ReadClusterPolicy(in)
	if p.SelectsNamespace(prod) || p.Err() == nil || !strings.Contains(p.Err().Error(), "spec.namespaceSelector") {
		t.Errorf("it selects: %t, and says %v", p.SelectsNamespace(prod), p.Err())
	}
	for name, tc := range map[string]struct {
		path              []string
		selects, anything bool
	}{
		"levels":              {[]string{"spec", "levels"}, true, false},
		"podSelector":         {[]string{"spec", "podSelector"}, true, true},
		"namespaceSelector":   {[]string{"spec", "namespaceSelector"}, false, false},
		"the spec as a whole": {[]string{"spec"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(clusterPolicy("p", "", placementv1alpha1.Level{TopologyKey: "zone"}))
			must(t, err)
			must(t, unstructured.SetNestedField(content, "five", tc.path...))
			p := clusterview.DecodePolicy(&unstructured.Unstructured{Object: content})
			if !p.Cluster() || p.Err() == nil {
				t.Fatalf("it is of the cluster: %t, and says %v", p.Cluster(), p.Err())
			}
			if got := p.SelectsNamespace(prod); got != tc.selects {
				t.Errorf("it selects the namespace: %t", got)
			}
			if p.SelectsNamespace(labels.Set{"env": "test"}) {
				t.Error("it selects a namespace that it does not name")
			}
			if got := p.Selects(asking().Label("app", "db").Obj()); got != tc.anything {
				t.Errorf("it selects any pod: %t", got)
			}
		})
	}
}
