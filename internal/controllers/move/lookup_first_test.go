// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Whose pods are evicted first, and of which volumes.
func TestLookupOfWhatIsEvictedFirst(t *testing.T) {
	claim := func(name string, modes ...corev1.PersistentVolumeAccessMode) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes}}
	}
	with := func(p *corev1.Pod, claim string) *corev1.Pod {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		return p
	}
	alone := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "alone", UID: "alone"}}
	foreign := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rolled", UID: "rolled", OwnerReferences: ownedBy("Rollout", "r")}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}}
	objects := []client.Object{alone, foreign, set, claim("one", corev1.ReadWriteOnce), claim("pod", corev1.ReadWriteOncePod), claim("many", corev1.ReadWriteMany), claim("read", corev1.ReadOnlyMany)}
	ephemeral := podOf("e", "ReplicaSet", "web-1")
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	kruise := podOf("k", "StatefulSet", "db")
	kruise.OwnerReferences[0].APIVersion = "apps.kruise.io/v1beta1"
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		ok, first bool
	}{
		"of a Deployment":                    {podOf("a", "ReplicaSet", "web-1"), true, false},
		"of one without a surge":             {podOf("a", "ReplicaSet", "one-1"), true, true},
		"of a ReplicaSet alone":              {podOf("a", "ReplicaSet", "alone"), true, true},
		"of a ReplicaSet of somebody's":      {podOf("a", "ReplicaSet", "rolled"), false, false},
		"of a StatefulSet":                   {podOf("a", "StatefulSet", "db"), true, true},
		"of another kind that is called so":  {kruise, false, false},
		"of a DaemonSet":                     {podOf("a", "DaemonSet", "ds"), false, false},
		"of a Job":                           {podOf("a", "Job", "job"), false, false},
		"with a volume of one node":          {with(podOf("a", "ReplicaSet", "web-1"), "one"), true, true},
		"with a volume of one pod":           {with(podOf("a", "ReplicaSet", "web-1"), "pod"), true, true},
		"with a volume of many nodes":        {with(podOf("a", "ReplicaSet", "web-1"), "many"), true, false},
		"with a volume that many nodes read": {with(podOf("a", "ReplicaSet", "web-1"), "read"), true, false},
		"with a claim that is gone":          {with(podOf("a", "ReplicaSet", "web-1"), "gone"), false, false},
		"with a volume of its own":           {ephemeral, true, false},
	} {
		c := newCounting(t, objects...)
		o, ok, err := c.Owner(t.Context(), tc.pod)
		if ok != tc.ok || ok && o.EvictFirst != tc.first || err != nil || c.Rests(tc.pod) == ok {
			t.Errorf("%s: %t, first: %t, error %v, rests: %t", name, ok, o.EvictFirst, err, c.Rests(tc.pod))
		}
		if _, _, surges, _ := c.Owners(t.Context(), tc.pod); surges != (tc.ok && !tc.first) {
			t.Errorf("%s: another one comes first: %t", name, surges)
		}
		before := c.gets
		if _, _, _ = c.Owner(t.Context(), tc.pod); c.gets != before && ok {
			t.Errorf("%s: it reads again what it has read", name)
		}
	}
}

// A workload that says that it has too few ready is asked for no pods, as it may say so at every look for hours. A pod that is not ready itself takes
// nothing away, so its workload is asked.
func TestLookupOfWorkloadsWithTooFewReady(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	for name, tc := range map[string]struct {
		ready   int32
		is      []corev1.PodCondition
		refuses bool
		lists   int
	}{
		"one is not ready":         {1, ready, true, 0},
		"all are, by its status":   {2, ready, true, 1}, // the other one is gone
		"it is the one that isn't": {1, nil, false, 1},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}}
		set.Spec.Replicas, set.Spec.Selector, set.Status.ReadyReplicas = new(int32(2)), selector, tc.ready
		alone := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}}
		alone.Spec.Replicas, alone.Spec.Selector, alone.Status.ReadyReplicas = new(int32(2)), selector, tc.ready
		for kind, of := range map[string]client.Object{"StatefulSet": set, "ReplicaSet": alone} {
			pod := podOf("db-0", kind, "db")
			pod.UID, pod.Labels, pod.Spec.NodeName, pod.Status.Conditions = "db-0", selector.MatchLabels, "n", tc.is
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			c := newCounting(t, of, pod, node)
			owner, ok, err := c.Owner(t.Context(), pod)
			if !ok || err != nil {
				t.Fatalf("%s of a %s: %t, error %v", name, kind, ok, err)
			}
			refuses, err := c.RefusesFirst(t.Context(), owner.Move(pod, placementv1alpha1.MoveDrain, History{}), pod, &owner)
			if refuses != tc.refuses || c.lists != tc.lists || c.Rests(pod) || err != nil {
				t.Errorf("%s of a %s: it refuses: %t, error %v, after %d lists, rests: %t", name, kind, refuses, err, c.lists, c.Rests(pod))
			}
		}
	}
}
