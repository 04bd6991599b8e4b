// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"math"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// The deadline leaves a replacement the time for which its ReplicaSet wants pods to have been ready, as far as the API server takes it.
func TestDeadlines(t *testing.T) {
	for minReady, want := range map[int32]int32{0: 600, 30: 630, 900: 1500, math.MaxInt32: 86400} {
		set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{MinReadySeconds: minReady}}
		if m := New(&corev1.Pod{}, set, &appsv1.Deployment{}, placementv1alpha1.MoveDrain, History{}); m.Spec.DeadlineSeconds != want {
			t.Errorf("with minReadySeconds %d it is %d s, want %d", minReady, m.Spec.DeadlineSeconds, want)
		}
	}
}

// A controller that has counted the Moves makes none after another one has: its bounds would not hold.
func TestMovesAreMadeByACount(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placementv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	counts := []*Count{NewCount(), NewCount()}
	for _, step := range []struct {
		name        string
		by          int
		stale, want bool
	}{{"a", 0, false, true}, {"b", 0, false, true}, {"b", 0, false, false}, {"c", 1, true, false}, {"c", 2, false, true}, {"d", 0, true, false}} {
		if step.by == len(counts) {
			counts = append(counts, NewCount())
		}
		move := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: step.name}}
		if stale := counts[step.by].Stale(); stale != step.stale {
			t.Errorf("%s: stale %t", step.name, stale)
		}
		if made, err := counts[step.by].Make(t.Context(), api, move); made != step.want || err != nil {
			t.Errorf("%s: made %t, %v", step.name, made, err)
		}
	}
}
