// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// movesOfStatefulSet looks once at a cluster whose pod is of a StatefulSet, beside what else there is. It says whether the pod rests after that.
func (c *cluster) movesOfStatefulSet(t *testing.T, beside ...client.Object) (all []placementv1alpha1.Move, rests bool) {
	t.Helper()
	c.pod.Name, c.pod.UID = "db-0", "first-uid"
	c.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "db", Controller: new(true)}}
	controller, api, _ := c.start(t)
	for _, o := range append(beside, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}}) {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := controller.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	var moves placementv1alpha1.MoveList
	if err := api.List(t.Context(), &moves, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	return moves.Items, controller.lookup.Rests(c.pod)
}

// Where all pods of a node are to be replaced, those that no other one can be ready beside are evicted first. No budget may be against it: who
// waits for one would hold a place among those that may be moved at once.
func TestWhichPodsAreEvictedFirst(t *testing.T) {
	ended := func(c *cluster) {
		c.Pods = None
		c.node.Annotations = map[string]string{clusterview.CordonedForEndAnnotation: "2026-01-01T12:00:00Z"}
	}
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   int
		rests  bool
	}{
		"all are":                         {func(c *cluster) { c.Pods = All }, 1, false},
		"blocked ones are":                {func(*cluster) {}, 0, true},
		"blocked ones are, and it is one": {func(c *cluster) { c.budgets[0].Status.DisruptionsAllowed = 0 }, 0, true},
		"all are, by policy":              {func(c *cluster) { c.says = placementv1alpha1.DrainedAll }, 1, false},
		"the node has reached its end":    {ended, 1, false},
		"it has, and the policy wants no": {func(c *cluster) { ended(c); c.says = placementv1alpha1.DrainedNone }, 0, false},
		"the node does not answer": {func(c *cluster) {
			c.Pods, c.node.Spec.Taints = All, []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
		}, 0, true},
		"the pod tolerates the cordon": {func(c *cluster) {
			c.Pods, c.pod.Spec.Tolerations = All, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, 0, true},
		"the node may be removed, and takes pods": {func(c *cluster) {
			c.Pods, c.node.Spec = All, corev1.NodeSpec{Taints: []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}}
		}, 0, true},
		"a budget that allows none": {func(c *cluster) { c.Pods, c.budgets[0].Status.DisruptionsAllowed = All, 0 }, 0, false},
	} {
		c := newCluster()
		c.budgets[0].Status.DisruptionsAllowed = 1
		tc.change(c)
		moves, rests := c.movesOfStatefulSet(t)
		if len(moves) != tc.want || rests != tc.rests {
			t.Errorf("%s: there are %d Moves, want %d; it rests: %t", name, len(moves), tc.want, rests)
			continue
		}
		for i := range moves {
			if m := &moves[i]; !m.Spec.EvictsFirst() || m.Spec.StatefulSet.UID != "db" || m.Spec.ReplicaSet.UID != "" || m.Name != "db-0-first" || m.Spec.Avoid == nil {
				t.Errorf("%s: it is %s, %+v", name, m.Name, m.Spec)
			}
		}
	}
}

// The pods of a StatefulSet go one after the other, each as soon as the others are ready, however long they take to start. No Move waits for that: it would
// fail after half a minute.
func TestDrainOfPodsThatStartSlowly(t *testing.T) {
	c := newCluster()
	c.Pods, c.budgets = All, nil
	ready := func(is corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
	}
	c.pod.Status.Conditions = ready(corev1.ConditionTrue)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}}
	set.Spec = appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: c.pod.Labels}}
	set.Status.ReadyReplicas, set.Status.AvailableReplicas = 2, 2 // its controller has not seen yet that one is gone
	c.pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "db", Controller: new(true)}}
	controller, api, clock := c.start(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	after := func(d time.Duration, want int) {
		t.Helper()
		clock.SetTime(clock.Now().Add(d))
		must(controller.look(t.Context()))
		var moves placementv1alpha1.MoveList
		must(api.List(t.Context(), &moves))
		if len(moves.Items) != want {
			t.Errorf("there are %d Moves, want %d", len(moves.Items), want)
		}
	}
	must(api.Create(t.Context(), set))
	after(every, 0) // the other one has gone
	other := c.pod.DeepCopy()
	other.Name, other.UID, other.ResourceVersion, other.Spec.NodeName, other.Status.Conditions = "db-1", "second-uid", "", "n2", ready(corev1.ConditionFalse)
	must(api.Create(t.Context(), other))
	after(every, 0)
	after(5*time.Minute, 0)
	other.Status.Conditions = ready(corev1.ConditionTrue)
	must(api.Status().Update(t.Context(), other))
	after(every, 1)
}
