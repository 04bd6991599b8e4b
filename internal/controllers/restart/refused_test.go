// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
