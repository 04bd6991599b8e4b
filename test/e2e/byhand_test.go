// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// replacing returns the only pod of an app, on the only node that has room, while it waits for another one to take its place.
func (s *story) replacing(app string) corev1.Pod {
	s.Helper()
	s.nodes(1, 1, zone("zone-a"))
	pod := s.deployed(app, 1, "").Pods[0]
	s.keeps(app, 1)
	s.move(&pod, placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain, DeadlineSeconds: 600})
	s.moved(1, placementv1alpha1.MoveReplacing)
	return pod
}

// collected waits until the garbage collector knows Moves: it looks for new kinds every half a minute, and removes nothing for the sake of those that
// it does not know.
func (s *story) collected() {
	s.Helper()
	none := placementv1alpha1.ObjectReference{Name: "none", UID: "none"}
	m := named[placementv1alpha1.Move](s, "of-none")
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: "none", UID: "none"}}
	m.Spec = placementv1alpha1.MoveSpec{Pod: none, ReplicaSet: none, Reason: placementv1alpha1.MoveDrain}
	s.make(m)
	s.goes(m)
}

// A Move goes in another way than by its own steps: because somebody deletes it, with all that depends on it, or without the finalizer that has
// it wait. The pod is its ReplicaSet's again, and was ready all the time.
func TestMoveIsRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*story, *placementv1alpha1.Move){
		"alone": func(s *story, m *placementv1alpha1.Move) { s.delete(m) },
		"with-its-dependents": func(s *story, m *placementv1alpha1.Move) {
			s.delete(m, client.PropagationPolicy(metav1.DeletePropagationForeground))
		},
		"with-its-finalizer": func(s *story, m *placementv1alpha1.Move) {
			s.delete(m)
			err := world.objects.Patch(s.ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			s.must(client.IgnoreNotFound(err), "taking its finalizer off")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, moves, byZone)
			s.collected()
			before := s.replacing("app")
			stop := s.neverBelow("app", 1)
			m := named[placementv1alpha1.Move](s, before.Name)
			remove(s, m)
			s.goes(m)
			after := s.settled("app", 1).Pods[0]
			stop()
			if by := metav1.GetControllerOf(&after); after.UID != before.UID || by == nil || by.Kind != "ReplicaSet" || len(after.OwnerReferences) != 1 {
				t.Errorf("pod %s of %v is there, and not %s", after.Name, after.OwnerReferences, before.Name)
			}
			s.sweptOff(&after)
		})
	}
}

// sweptOff waits until a pod has nothing of a Move any more.
func (s *story) sweptOff(pod *corev1.Pod) {
	s.Helper()
	becomes(s, pod.Name, "the pod to be as it was", func(is *corev1.Pod) error {
		for _, key := range moveAnnotations {
			if value, there := is.Annotations[key]; there {
				return fmt.Errorf("it still has %s: %s", key, value)
			}
		}
		return nil
	})
}

// A Move that somebody has made by hand goes with the Deployment, as those of the controller do, though a disruption budget wants its pod.
func TestMoveByHandGoesWithTheDeployment(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	s.collected()
	s.nodes(1, 1, zone("zone-a"))
	pod := s.deployed("app", 1, "").Pods[0]
	s.keeps("app", 1)
	m := s.moveOf(&pod, placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain})
	s.make(m)
	s.moved(1, placementv1alpha1.MoveReplacing)
	s.delete(named[appsv1.Deployment](s, "app"))
	s.settled("app", 0)
	s.goes(m)
}
