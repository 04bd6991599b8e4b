// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"maps"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func costing(cost string) map[string]string {
	if cost == "" {
		return map[string]string{}
	}
	return map[string]string{corev1.PodDeletionCost: cost}
}

// A pod that was moved has its own cost again. What somebody has written meanwhile, as Karpenter does for nodes that it is about to remove, is not ours
// to change; nor is the cost of a pod that was handed over and not given another one.
func TestCostsAreRestored(t *testing.T) {
	const karpenters = "-2147483648"
	for _, before := range []string{"", "-3", karpenters} {
		for _, ours := range []int{keptCost, goneCost} {
			for meanwhile, want := range map[string]string{"": before, karpenters: karpenters, "7": "7"} {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: costing(before)}}
				setCost(p, ours)
				if p.Annotations[corev1.PodDeletionCost] != strconv.Itoa(ours) {
					t.Errorf("it costs %q, want %d", p.Annotations[corev1.PodDeletionCost], ours)
				}
				if meanwhile != "" {
					p.Annotations[corev1.PodDeletionCost] = meanwhile
				}
				if restore(p); !maps.Equal(p.Annotations, costing(want)) {
					t.Errorf("with %q before and %q meanwhile it has %v", before, meanwhile, p.Annotations)
				}
			}
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: costing(before)}}
		if restore(p); !maps.Equal(p.Annotations, costing(before)) {
			t.Errorf("with %q before, and nothing changed, it has %v", before, p.Annotations)
		}
	}
}

// A pod that is given another cost while it has one of a Move's has its own again all the same.
func TestCostsAreKeptOnce(t *testing.T) {
	for _, before := range []string{"", "-3"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: costing(before)}}
		setCost(p, keptCost)
		setCost(p, goneCost)
		if restore(p); !maps.Equal(p.Annotations, costing(before)) {
			t.Errorf("with %q before it has %v", before, p.Annotations)
		}
	}
}

// A pod that is the one to go for another Move has the marks of that one. If its own Move took them off they would be put there again, and again.
func TestMarksOfAnotherMoveStay(t *testing.T) {
	for by, want := range map[string]step{
		"":        {phase: placementv1alpha1.MoveUndoing, action: restoreCost},
		"another": {phase: placementv1alpha1.MoveUndone, action: wait},
	} {
		pod := podOf("p", "ReplicaSet", "web-1")
		pod.UID, pod.Annotations = "p", map[string]string{}
		setCost(pod, keptCost)
		if by != "" {
			pod.Annotations[clusterview.RemovedForMoveAnnotation] = by
		}
		o := &objects{
			move: &placementv1alpha1.Move{Status: placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveUndoing}},
			set:  &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "web-1"}}, pod: pod, pods: []corev1.Pod{*pod},
		}
		o.move.Spec.ReplicaSet.UID = "web-1"
		if s := next(o.facts(noon)); s.phase != want.phase || s.action != want.action {
			t.Errorf("marked for %q: %+v", by, s)
		}
	}
}

// What a Move has left on pods that is gone is taken off them, and what one has put there that is busy stays.
func TestSweep(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(name, removedFor string, cost int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: costing("-3")}}
		if cost != 0 {
			setCost(p, cost)
		}
		if removedFor != "" {
			p.Annotations[clusterview.RemovedForMoveAnnotation] = removedFor
		}
		return p
	}
	move := func(name, of string, phase placementv1alpha1.MovePhase) *placementv1alpha1.Move {
		m := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: placementv1alpha1.MoveStatus{Phase: phase}}
		m.Spec.Pod = placementv1alpha1.ObjectReference{Name: of, UID: of}
		return m
	}
	// Which pods keep their marks.
	marked := map[string]bool{"original": true, "replacement": true, "of-ended": false, "back-from-none": false, "of-none": false, "evictable": false, "moved": true}
	evictable := func(name string) *corev1.Pod {
		p := pod(name, "", 0)
		p.Annotations[safeToEvict], p.Annotations[clusterview.MadeEvictableAnnotation] = "true", "true"
		return p
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		move("busy", "original", placementv1alpha1.MoveUndoing), move("ended", "x", placementv1alpha1.MoveUndone),
		pod("original", "", keptCost), pod("replacement", "busy", goneCost), pod("of-ended", "ended", goneCost), pod("back-from-none", "", keptCost), pod("of-none", "none", goneCost),
		pod("never", "", 0), evictable("evictable"), evictable("moved"), move("replacing", "moved", placementv1alpha1.MoveReplacing),
	).Build()
	r := &Reconciler{Client: api, API: api}
	if err := r.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if is := !maps.Equal(p.Annotations, costing("-3")); is != marked[p.Name] {
			t.Errorf("pod %s has %v", p.Name, p.Annotations)
		}
	}
}
