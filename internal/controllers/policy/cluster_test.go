// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// all is a policy of the cluster over zones for the web of all namespaces that have env=prod.
func all(name string, mode placementv1alpha1.Mode) placementv1alpha1.ClusterPlacementPolicy {
	p := placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"env": "prod"}
	p.Spec.PlacementPolicySpec = made(name, "web", 0).Spec
	p.Spec.Mode = mode
	return p
}

func in(namespace string, list []corev1.Pod) []corev1.Pod {
	for i := range list {
		list[i].Namespace = namespace
	}
	return list
}

// A policy of the cluster counts pods of all namespaces that it selects, and is in no conflict with policies of these.
func TestClusterPolicies(t *testing.T) {
	namespaces := map[string]labels.Set{"ns": {"env": "prod"}, "far": {"env": "prod"}, "dev": {"env": "dev"}}
	all3 := slices.Concat(pods(2, "web"), in("far", pods(4, "web")), in("dev", pods(8, "web")))
	own := made("own", "web", 0)
	for name, tc := range map[string]struct {
		mode       placementv1alpha1.Mode
		pods       []corev1.Pod
		own, whole string
	}{
		"by default, the one of the namespace comes first": {placementv1alpha1.ModeDefault, all3, "2 2 Valid! NoConflict InForce!", "6 4 Valid! NoConflict InForce!"},
		"overriding, the one of the cluster does":          {placementv1alpha1.ModeOverride, all3, "2 0 Valid! NoConflict Overruled", "6 6 Valid! NoConflict InForce!"},
		"what the scheduler has written": {
			placementv1alpha1.ModeDefault,
			slices.Concat(placedBy(1, "policy/own@3 spread=zone"), placedBy(2, "clusterpolicy/own@3"), placedBy(4, "clusterpolicy/all@3 spread=zone")),
			"7 1 Valid! NoConflict InForce!", "7 4 Valid! NoConflict Overruled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := all("all", tc.mode)
			states := compute([]*clusterview.Policy{clusterview.ReadPolicy(&own), clusterview.ReadClusterPolicy(&whole)}, namespaces, tc.pods)
			for i, want := range []string{tc.own, tc.whole} {
				status := states[i].status(placementv1alpha1.PlacementPolicyStatus{}, noon)
				if got := brief(status); got != want {
					t.Errorf("%s: got %q, want %q", states[i].policy, got, want)
				}
				ready := meta.FindStatusCondition(status.Conditions, placementv1alpha1.ConditionReady)
				if other := states[1-i].policy; ready.Status == metav1.ConditionFalse && !strings.Contains(ready.Message, other.String()) {
					t.Errorf("%s does not say that %s comes before it: %s", states[i].policy, other, ready.Message)
				}
			}
		})
	}
}

// A policy of the cluster whose namespaces cannot be read holds up no pods, and says so.
func TestAClusterPolicyForNoNamespace(t *testing.T) {
	whole := all("all", placementv1alpha1.ModeDefault)
	whole.Spec.NamespaceSelector.MatchLabels = map[string]string{"not a key": "prod"}
	states := compute([]*clusterview.Policy{clusterview.ReadClusterPolicy(&whole)}, map[string]labels.Set{"ns": {"env": "prod"}}, pods(2, "web"))
	status := states[0].status(placementv1alpha1.PlacementPolicyStatus{}, noon)
	m := meta.FindStatusCondition(status.Conditions, placementv1alpha1.ConditionAccepted).Message
	if !strings.Contains(m, "spec.namespaceSelector") || !strings.HasSuffix(m, "; it has a say in no namespace") {
		t.Error(m)
	}
}

// A request without a namespace writes the statuses of the policies of the cluster. One that cannot be decoded stops no other.
func TestReconcileTheCluster(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	whole, own := all("all", placementv1alpha1.ModeOverride), made("own", "web", 0)
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&placementv1alpha1.PlacementPolicy{}, &placementv1alpha1.ClusterPlacementPolicy{}).WithObjects(
		&whole, &own, named("a", same), named("b", func(p *corev1.Pod) { p.Namespace = "far" }), named("c", func(p *corev1.Pod) { p.Namespace = "dev" }),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"env": "prod"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "far", Labels: map[string]string{"env": "prod"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev"}},
	).Build()
	r := &Reconciler{Client: c, Schedulers: []string{"espalier-scheduler"}, Clock: clocktesting.NewFakePassiveClock(noon.Time)}
	status := func(kind, namespace, name string) placementv1alpha1.PlacementPolicyStatus {
		t.Helper()
		for _, request := range []string{"", "ns"} {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: request}}); err != nil {
				t.Fatal(err)
			}
		}
		u := object(kind).(*unstructured.Unstructured)
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
			t.Fatal(err)
		}
		return statusOf(u)
	}
	if got := brief(status(ofCluster, "", "all")); got != "2 2 Valid! NoConflict InForce!" {
		t.Errorf("the policy of the cluster: %q", got)
	}
	if got := brief(status(ofNamespace, "ns", "own")); got != "1 0 Valid! NoConflict Overruled" {
		t.Errorf("the policy of the namespace: %q", got)
	}
}
