// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// A pod that has no node is not moved, and nobody asks for its node.
func TestPodWithoutANode(t *testing.T) {
	for _, reason := range []placementv1alpha1.MoveReason{placementv1alpha1.MoveDrain, placementv1alpha1.MoveDisconnect} {
		o := &objects{
			pod: &corev1.Pod{}, set: &appsv1.ReplicaSet{}, deployment: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}},
			move: &placementv1alpha1.Move{Spec: placementv1alpha1.MoveSpec{Reason: reason, Avoid: &placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname}}},
		}
		o.move.Status.Phase = placementv1alpha1.MoveHandingOver
		api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("resource name may not be empty")
			},
		})
		if err := errors.Join(o.readNode(t.Context(), api), o.readAstray(t.Context(), api)); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if got := o.refusal(); got != "the pod has no node" {
			t.Errorf("%s: the refusal is %q", reason, got)
		}
	}
}

// A replacement is no better off in the domain that the pod is to leave; nor, for a drain, on a node that is about to be removed for the
// same reason. The first node is the pod's.
func TestAstray(t *testing.T) {
	node := func(name string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		change(n)
		return n
	}
	plain := func(*corev1.Node) {}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	candidate := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	for name, tc := range map[string]struct {
		reason   placementv1alpha1.MoveReason
		from, to func(*corev1.Node)
		on       []string // the nodes of the pods that have come since
		want     bool
	}{
		"none has come":              {placementv1alpha1.MoveDrain, cordoned, plain, nil, false},
		"it is elsewhere":            {placementv1alpha1.MoveDrain, cordoned, plain, []string{"to"}, false},
		"it is where the pod is":     {placementv1alpha1.MoveDrain, cordoned, plain, []string{"from"}, true},
		"one of two is elsewhere":    {placementv1alpha1.MoveDrain, cordoned, plain, []string{"from", "to"}, false},
		"its node is gone":           {placementv1alpha1.MoveDrain, cordoned, plain, []string{"gone"}, false},
		"both are candidates":        {placementv1alpha1.MoveDrain, candidate, candidate, []string{"to"}, true},
		"the other is a candidate":   {placementv1alpha1.MoveDrain, cordoned, candidate, []string{"to"}, false},
		"both are, for no drain":     {placementv1alpha1.MoveRestart, candidate, candidate, []string{"to"}, false},
		"the pod's is none any more": {placementv1alpha1.MoveDrain, plain, candidate, []string{"to"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := corev1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects([]client.Object{node("from", tc.from), node("to", tc.to)}...).Build()
			made := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
			o := &objects{pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "from"}}, move: &placementv1alpha1.Move{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made},
				Spec:       placementv1alpha1.MoveSpec{Reason: tc.reason, Avoid: &placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname, Value: new("from")}},
				Status:     placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveReplacing},
			}}
			before := metav1.NewTime(made.Add(-time.Second))
			o.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: before}, Spec: corev1.PodSpec{NodeName: "from"}}}
			for _, on := range tc.on {
				o.pods = append(o.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made}, Spec: corev1.PodSpec{NodeName: on}})
			}
			if err := o.readAstray(t.Context(), api); err != nil {
				t.Fatal(err)
			}
			if o.astray != tc.want {
				t.Errorf("it is astray: %t", o.astray)
			}
		})
	}
}
