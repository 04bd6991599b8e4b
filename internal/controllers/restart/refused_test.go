// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// budgets makes disruption budgets for all pods.
func (r *rig) budgets(names ...string) {
	r.Helper()
	for _, name := range names {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
		if err := r.Client.Create(r.Context(), b); err != nil {
			r.Fatal(err)
		}
	}
}

// A pod that two disruption budgets select stays: the API server would never evict it. It is looked at again when one of them is gone.
func TestNoRestartsUnderTwoBudgets(t *testing.T) {
	r := newRig(t, options(), plain)
	r.budgets("one", "two")
	r.after(time.Hour)
	if err := r.Client.Delete(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "two"}}); err != nil {
		t.Fatal(err)
	}
	r.after(29 * time.Second)
	r.after(time.Second, "web-1-0")
}

// An owner that cannot be read is said, and holds up no pods of others.
func TestRestartsBesideAnOwnerThatCannotBeRead(t *testing.T) {
	r := newRig(t, options(), func(_ *corev1.ConfigMap, _ *appsv1.Deployment, p *corev1.Pod) {
		if p.Name == "web-1-0" { // it comes first
			p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "broken-1", types.UID("broken-1")
		}
	})
	r.API = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if key.Name == "broken-1" {
				return errors.New("in trouble")
			}
			return to.Get(ctx, key, into, options...)
		},
	})
	r.clock.Step(time.Hour)
	if err := r.look(t.Context()); err == nil || !strings.Contains(err.Error(), "in trouble") {
		t.Errorf("the error is %v", err)
	}
	var moves placementv1alpha1.MoveList
	if err := r.Client.List(t.Context(), &moves); err != nil || len(moves.Items) != 1 || moves.Items[0].Name != "web-1-1" {
		t.Errorf("there are %d Moves, error %v, want that of web-1-1", len(moves.Items), err)
	}
}
