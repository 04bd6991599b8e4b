// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// replacing returns the only pod of an app, on the only node that has room, while it waits for another one to take its place.
func (s *story) replacing(app string) corev1.Pod {
	s.Helper()
	s.nodes(1, 1, zone("zone-a"))
	s.deploy(app, 1, "")
	pod := s.settled(app, 1).Pods[0]
	s.keeps(app, 1)
	s.move(&pod, placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain, DeadlineSeconds: 600})
	s.moved(1, placementv1alpha1.MoveReplacing)
	return pod
}

// collected waits until the garbage collector knows Moves: it looks for new kinds every half a minute, and removes nothing for the sake of those that
// it does not know.
func (s *story) collected() {
	s.Helper()
	m := &placementv1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "of-none", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: "none", UID: "none",
		}}},
		Spec: placementv1alpha1.MoveSpec{
			Pod: placementv1alpha1.ObjectReference{Name: "none", UID: "none"}, ReplicaSet: placementv1alpha1.ObjectReference{Name: "none", UID: "none"},
			Reason: placementv1alpha1.MoveDrain,
		},
	}
	s.must(s.policies().Create(s.ctx, m), "creating a Move of no Deployment")
	s.until("the garbage collector to know Moves", func() error {
		if err := s.policies().Get(s.ctx, client.ObjectKeyFromObject(m), &placementv1alpha1.Move{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Move of no Deployment is there: %w", err)
		}
		return nil
	})
}

// A Move goes in another way than by its own steps: because somebody deletes it, with all that depends on it, or without the finalizer that has
// it wait. The pod is its ReplicaSet's again, and was ready all the time.
func TestMoveIsRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*story, *placementv1alpha1.Move){
		"alone": func(s *story, m *placementv1alpha1.Move) { s.must(s.policies().Delete(s.ctx, m), "deleting the Move") },
		"with-its-dependents": func(s *story, m *placementv1alpha1.Move) {
			s.must(s.policies().Delete(s.ctx, m, client.PropagationPolicy(metav1.DeletePropagationForeground)), "deleting the Move")
		},
		"with-its-finalizer": func(s *story, m *placementv1alpha1.Move) {
			s.must(s.policies().Delete(s.ctx, m), "deleting the Move")
			err := s.policies().Patch(s.ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			s.must(client.IgnoreNotFound(err), "taking its finalizer off")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, moves, byZone)
			s.collected()
			before := s.replacing("app")
			stop := s.neverBelow("app", 1)
			remove(s, &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: before.Name}})
			s.until("the Move to be gone", func() error {
				if n := len(s.moves()); n > 0 {
					return fmt.Errorf("there are %d", n)
				}
				return nil
			})
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
	s.until("the pod to be as it was", func() error {
		is, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
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
	s.deploy("app", 1, "")
	pod := s.settled("app", 1).Pods[0]
	s.keeps("app", 1)
	set := metav1.GetControllerOf(&pod)
	s.must(s.policies().Create(s.ctx, &placementv1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "by-hand"},
		Spec: placementv1alpha1.MoveSpec{
			Pod: placementv1alpha1.ObjectReference{Name: pod.Name, UID: string(pod.UID)}, ReplicaSet: placementv1alpha1.ObjectReference{Name: set.Name, UID: string(set.UID)},
			Reason: placementv1alpha1.MoveDrain,
		},
	}), "creating a Move")
	s.moved(1, placementv1alpha1.MoveReplacing)
	s.must(s.client.AppsV1().Deployments(s.ns).Delete(s.ctx, "app", metav1.DeleteOptions{}), "deleting the Deployment")
	s.settled("app", 0)
	s.until("the Move to be gone", func() error {
		if moves := s.moves(); len(moves) > 0 {
			return fmt.Errorf("it is %s: %s", moves[0].Status.Phase, moves[0].Status.Message)
		}
		return nil
	})
}
