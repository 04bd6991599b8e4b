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
		"a budget that allows none":       {func(c *cluster) { c.Pods, c.budgets[0].Status.DisruptionsAllowed = All, 0 }, 0, false},
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

// A pod that comes back to the node from which another one of its workload was evicted stays there as long as the Move is known. It would come back again
// and again.
func TestPodThatComesBackIsLeft(t *testing.T) {
	for from, want := range map[string]int{"n1.example.com": 1, "n9.example.com": 2} {
		c := newCluster()
		c.Pods, c.budgets = All, nil
		c.pod.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 11, 59, 0, 0, time.UTC))
		before := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "before", CreationTimestamp: metav1.NewTime(c.pod.CreationTimestamp.Add(-time.Minute))}}
		before.Spec.StatefulSet, before.Spec.EvictFirst = placementv1alpha1.ObjectReference{Name: "db", UID: "db"}, new(true)
		before.Spec.Avoid = &placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname, Value: &from}
		before.Status.Phase = placementv1alpha1.MoveDone
		if moves, _ := c.movesOfStatefulSet(t, before); len(moves) != want {
			t.Errorf("evicted from %s before: there are %d Moves, want %d", from, len(moves), want)
		}
	}
}
