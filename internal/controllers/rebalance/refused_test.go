// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod that two disruption budgets select stays: the API server would never evict it. A dry run does not name it, and it is looked at again when
// one of them is gone.
func TestNoMovesUnderTwoBudgets(t *testing.T) {
	for _, mode := range []string{Enabled, DryRun} {
		o := options()
		o.Mode = mode
		r := newRig(t, o)
		r.node("a", "a", time.Hour)
		r.node("b", "b", time.Hour)
		r.deploy("web", plain, "a", "a", "a", "a")
		for _, name := range []string{"one", "two"} {
			r.make(&policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
			})
		}
		r.after(0)
		r.after(2 * time.Minute)
		if n := len(r.said.Events); n > 0 {
			t.Errorf("%s: it says %q", mode, <-r.said.Events)
		}
		if err := r.Client.Delete(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "two"}}); err != nil {
			t.Fatal(err)
		}
		if mode == Enabled {
			r.after(again, "web-3")
		} else if r.after(again); len(r.said.Events) != 1 {
			t.Error("the dry run does not name it")
		}
	}
}
