// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// A pod that was handed over when its Move had ended is handed back before the Move goes.
func TestPodOfAMoveThatHasEnded(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ended := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	m := &placementv1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "move"},
		Spec: placementv1alpha1.MoveSpec{
			Pod: placementv1alpha1.ObjectReference{Name: "p", UID: "p"}, ReplicaSet: placementv1alpha1.ObjectReference{Name: "web-1", UID: "web-1"},
			Reason: placementv1alpha1.MoveDrain,
		},
		Status: placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveFailed, EndedAt: new(metav1.NewTime(ended))},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p", UID: "p", Annotations: map[string]string{safeToEvict: "true", clusterview.MadeEvictableAnnotation: "true", corev1.PodDeletionCost: "-3"},
		OwnerReferences: []metav1.OwnerReference{{Kind: Kind, Name: "p", UID: "move", Controller: new(true)}},
	}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m, pod).WithStatusSubresource(m).Build()
	r := &Reconciler{Client: api, API: api, Clock: clocktesting.NewFakeClock(ended.Add(2 * time.Hour))}
	for _, there := range []bool{true, false} { // first the pod, then the Move
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
			t.Fatal(err)
		}
		var is corev1.Pod
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), &is); err != nil {
			t.Fatal(err)
		}
		if owner := metav1.GetControllerOfNoCopy(&is); owner == nil || owner.UID != "web-1" || len(is.Annotations) != 1 || is.Annotations[corev1.PodDeletionCost] != "-3" {
			t.Errorf("the pod is of %v, with annotations %v", owner, is.Annotations)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(m), &placementv1alpha1.Move{}); apierrors.IsNotFound(err) == there {
			t.Errorf("the Move is there: %v, want %t", err, there)
		}
	}
}

// While a pod is moved its ReplicaSet is one of its owners, though not its controller, and as before when the pod is back. A Move that somebody has
// made by hand goes with the Deployment as well.
func TestOwnersOfAPodThatIsMoved(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reference := func(uid types.UID, controller bool) metav1.OwnerReference {
		o := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: string(uid), UID: uid}
		if controller {
			o.Controller = new(true)
		}
		return o
	}
	o := &objects{
		move:       &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "by-hand", UID: "move"}},
		pod:        &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{reference("beside", false), reference("web-1", true)}}},
		deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web"}},
	}
	o.move.Spec.ReplicaSet = placementv1alpha1.ObjectReference{Name: "web-1", UID: "web-1"}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.move, o.pod).Build()
	r := &Reconciler{Client: api, API: api}
	for _, step := range []struct {
		do                 action
		owners, controller string
	}{{handOver, "beside web-1", "web-1"}, {handOver, "beside move web-1", "move"}, {handBack, "beside web-1", "web-1"}} {
		for _, read := range []client.Object{o.move, o.pod} {
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(read), read); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.act(t.Context(), o, step.do); err != nil {
			t.Fatal(err)
		}
		var is corev1.Pod
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(o.pod), &is); err != nil {
			t.Fatal(err)
		}
		var owners []string
		for _, by := range is.OwnerReferences {
			owners = append(owners, string(by.UID))
		}
		if got := strings.Join(owners, " "); got != step.owners || metav1.GetControllerOf(&is).UID != types.UID(step.controller) {
			t.Errorf("it is of %s, and its controller is %v; want %s and %s", got, metav1.GetControllerOf(&is), step.owners, step.controller)
		}
	}
	if by := metav1.GetControllerOf(o.move); !slices.Contains(o.move.Finalizers, finalizer) || by == nil || by.Kind != "Deployment" || by.UID != "web" {
		t.Errorf("the Move is of %v, with the finalizers %v", by, o.move.Finalizers)
	}
}

// A pod that was handed back after it was read is not evicted.
func TestEvictsWhatItHolds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m := &placementv1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "move"},
		Spec:       placementv1alpha1.MoveSpec{Pod: placementv1alpha1.ObjectReference{Name: "p", UID: "p"}},
	}
	for owner, stays := range map[types.UID]bool{"move": false, "web-1": true} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{{Name: string(owner), UID: owner, Controller: new(true)}},
		}}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pod).Build()
		r := &Reconciler{Client: api, API: api}
		if err := r.evict(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); apierrors.IsNotFound(err) == stays {
			t.Errorf("the pod of %s: %v", owner, err)
		}
	}
}

// A look that is late evicts no pod whose Move was deleted, was made anew, or has ended since the look read it.
func TestLateLookEvictsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*stateful, *placementv1alpha1.Move)
		stays     bool
	}{
		"nothing":    {func(*stateful, *placementv1alpha1.Move) {}, false},
		"it is gone": {func(s *stateful, m *placementv1alpha1.Move) { s.must(s.api.Delete(t.Context(), m)) }, true},
		"another one": {func(s *stateful, m *placementv1alpha1.Move) {
			s.must(s.api.Delete(t.Context(), m))
			again := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: "another"}, Spec: m.Spec}
			s.must(s.api.Create(t.Context(), again))
		}, true},
		"it is being deleted": {func(s *stateful, m *placementv1alpha1.Move) {
			m.Finalizers = []string{"example.com/stay"}
			s.must(s.api.Update(t.Context(), m))
			s.must(s.api.Delete(t.Context(), m))
		}, true},
		"it has failed": {func(s *stateful, m *placementv1alpha1.Move) {
			m.Status.Phase = placementv1alpha1.MoveFailed
			s.must(s.api.Status().Update(t.Context(), m))
		}, true},
	} {
		s := newStateful(t)
		pods, _ := s.pods()
		late := s.look(s.move(&pods[0]), 1)
		tc.meanwhile(s, late.DeepCopy())
		s.must(s.evict(t.Context(), late))
		if left, _ := s.pods(); late.Status.Phase != placementv1alpha1.MoveEvicting || (len(left) == replicas) != tc.stays {
			t.Errorf("%s: the Move was %s, and %d pods are left", name, late.Status.Phase, len(left))
		}
	}
}
