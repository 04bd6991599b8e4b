// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// TestAStatusFromAStaleCacheIsMended has the last pod go before the cache has the status that
// counted it. To a look at that cache there is nothing to write, and nothing but the event of that
// status asks for another look.
func TestAStatusFromAStaleCacheIsMended(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	policy, pod := made("a", "web", 0), named("p", same)
	var cached *unstructured.Unstructured // what a list says, while it is not nil
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&placementv1alpha1.PlacementPolicy{}).WithObjects(&policy).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if policies, ok := list.(*unstructured.UnstructuredList); ok && cached != nil && policies.GetKind() == ofNamespace+"List" {
				policies.Items = []unstructured.Unstructured{*cached.DeepCopy()}
				return nil
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	read := func() *unstructured.Unstructured {
		u := object(ofNamespace).(*unstructured.Unstructured)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(&policy), u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	governed := func(u *unstructured.Unstructured) int32 { return *statusOf(u).GovernedPods }
	r := &Reconciler{Client: c, Schedulers: []string{"espalier-scheduler"}, Clock: clocktesting.NewFakePassiveClock(noon.Time)}
	reconcile := func() {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns"}}); err != nil {
			t.Fatal(err)
		}
	}

	reconcile()
	before := read()
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	reconcile()
	counted := read()
	if governed(counted) != 1 {
		t.Fatalf("%d pods are governed, want 1", governed(counted))
	}
	if err := c.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	cached = before
	reconcile()
	if got := governed(read()); got != 1 {
		t.Fatalf("%d pods are governed by a look at the stale cache: this test tells nothing", got)
	}
	cached = nil
	matters := statusChanges()
	if !matters.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: counted}) {
		t.Fatal("the event of the status asks for nothing")
	}
	reconcile()
	mended := read()
	if governed(mended) != 0 {
		t.Errorf("%d pods are governed, and there is none", governed(mended))
	}
	if matters.Update(event.UpdateEvent{ObjectOld: mended, ObjectNew: mended}) || matters.Create(event.CreateEvent{Object: mended}) {
		t.Error("events that change no status ask for a look")
	}
}
