// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// namespaces gives the policies some, by name, with the value of their label env.
func (r *rig) namespaces(env map[string]string) cache.Indexer {
	r.t.Helper()
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, value := range env {
		r.label(known, name, value)
	}
	r.Policies.namespaces = corelisters.NewNamespaceLister(known)
	return known
}

func (r *rig) label(known cache.Indexer, name, env string) {
	r.t.Helper()
	if err := known.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}); err != nil {
		r.t.Fatal(err)
	}
}

// clusterPolicy selects the pods of an app in the namespaces of prod.
func clusterPolicy(name, app string, generation int64) *clusterview.Policy {
	in := &placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
	in.Spec.NamespaceSelector.MatchLabels = map[string]string{"env": "prod"}
	in.Spec.PlacementPolicySpec = policy(name, app, generation).Spec
	return clusterview.ReadClusterPolicy(in)
}

// An edit of a policy of the cluster wakes the pods that it is for, in all namespaces.
func TestPoliciesOfTheCluster(t *testing.T) {
	web, db, far, dev := pod("ns", "web", "web"), pod("ns", "db", "db"), pod("elsewhere", "far", "web"), pod("dev", "dev", "web")
	r := start(t, installed, web, db, far, dev)
	known := r.namespaces(map[string]string{"ns": "prod", "elsewhere": "prod", "dev": "dev"})
	r.wakes("db", "dev", "far", "web")
	r.seen(&stored{metav1.ObjectMeta{Name: "all"}, clusterPolicy("all", "web", 1)})
	r.wakes("far", "web")
	r.governs("all", web)
	r.governs("all", far)
	r.governs("", dev)
	r.governs("", db)

	// The policy of a namespace comes before that of the cluster.
	r.cluster.Add(policy("own", "web", 1))
	r.wakes("web")
	r.governs("own", web)

	// A namespace that gets another label has other policies.
	r.label(known, "dev", "prod")
	r.relabelled("dev")
	r.wakes("dev")
	r.governs("all", dev)

	r.gone("all")
	r.wakes("dev", "far")
	r.governs("", far)
	r.governs("own", web)
}

// A pod of a namespace that the scheduler has not seen yet waits for it, and for no longer.
func TestNamespaceThatIsNotKnownYet(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web)
	known := r.namespaces(nil)
	r.wakes("web")
	r.governs("", web) // without policies of the cluster nobody needs to know
	r.seen(&stored{metav1.ObjectMeta{Name: "all"}, clusterPolicy("all", "web", 1)})
	if _, err := r.Governing(web); err == nil || !strings.Contains(err.Error(), `namespace "ns" is not known yet`) {
		t.Fatalf("got %v", err)
	}
	r.label(known, "ns", "prod")
	r.arrived("ns")
	r.wakes("web")
	r.governs("all", web)
	r.arrived("ns") // and for nobody twice
	r.arrived("other")
	r.gone("all")
	r.wakes("web")
}

// A pod that waits for its namespace is woken also when the last policy for which that matters goes.
func TestNamespaceThatNeedNotBeKnownAnyMore(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web)
	known := r.namespaces(nil)
	r.wakes("web")
	r.seen(&stored{metav1.ObjectMeta{Name: "all"}, clusterPolicy("all", "web", 1)})
	if _, err := r.Governing(web); err == nil {
		t.Fatal("it is known which policies are for a namespace that is not")
	}
	r.gone("all")
	r.wakes("web")
	r.label(known, "ns", "prod")
	r.governs("", web)
}

// While the policies of the cluster are not known no pod is placed as if there were none.
func TestBothKindsMustBeKnown(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web)
	r.wakes("web")
	r.of[ofCluster].Unread()
	if _, err := r.Governing(web); err == nil || !strings.Contains(err.Error(), "policies have not been read yet") || !strings.Contains(err.Error(), "watch clusterplacementpolicies") {
		t.Fatalf("got %v", err)
	}
	r.of[ofCluster].None()
	r.wakes("web")
	r.governs("", web)
}
