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
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// Of a pod that is back and its replacement the one stays that the strategy says, where three pods are on zones of one node each.
func TestReplacementStays(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: controllertest.Named("web-1")}
	pod := func(name, node string, minutes int) *corev1.Pod {
		p := podOf(name, "ReplicaSet", "web-1")
		p.CreationTimestamp, p.Annotations = metav1.NewTime(noon.Add(time.Duration(minutes)*time.Minute)), map[string]string{clusterview.PlacedByAnnotation: "profile; spread=zone"}
		p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.CreationTimestamp}}}}
		return p
	}
	moved := func(phase placementv1alpha1.MovePhase, minutes int) *placementv1alpha1.Move {
		m := moveOf("other")
		m.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
		m.Spec.Reason, m.Status.Phase = placementv1alpha1.MoveDisconnect, phase
		return m
	}
	for name, tc := range map[string]struct {
		keep                  placementv1alpha1.Keep
		original, replacement string // their nodes
		change                func(original, replacement *corev1.Pod)
		other                 *placementv1alpha1.Move // of another pod of the ReplicaSet
		want                  bool
	}{
		"the original":                          {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c"},
		"the replacement":                       {keep: placementv1alpha1.KeepReplacement, original: "c", replacement: "b", want: true},
		"the better place is the original's":    {keep: placementv1alpha1.KeepBestPlaced, original: "c", replacement: "b"},
		"the better place is the replacement's": {keep: placementv1alpha1.KeepBestPlaced, original: "b", replacement: "c", want: true},
		"one place is as good":                  {keep: placementv1alpha1.KeepBestPlaced, original: "c", replacement: "c"},
		"a better place, and it is not ready":   {keep: placementv1alpha1.KeepBestPlaced, original: "b", replacement: "c", change: func(_, r *corev1.Pod) { r.Status.Conditions[0].Status = corev1.ConditionFalse }},
		"the one that has run for longer":       {keep: placementv1alpha1.KeepLongestRunning, original: "b", replacement: "c"},
		"the one that has, since it was started": {keep: placementv1alpha1.KeepLongestRunning, original: "c", replacement: "b", change: func(o, _ *corev1.Pod) {
			o.Status.ContainerStatuses[0].State.Running.StartedAt.Time = noon.Add(time.Hour)
		}, want: true},
		"the original is a replacement itself": {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", other: moved(placementv1alpha1.MoveWaiting, 0), want: true},
		"of a pod that is back":                {keep: placementv1alpha1.KeepOriginal, original: "b", other: moved(placementv1alpha1.MoveUndone, -1), want: true},
		"of a pod that is gone":                {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", other: moved(placementv1alpha1.MoveDone, -1)},
		"the other pod was replaced later":     {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", other: moved(placementv1alpha1.MoveWaiting, 1)},
		"there is no replacement":              {keep: placementv1alpha1.KeepReplacement, original: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			original, replacement := pod("original", tc.original, 0), pod("replacement", tc.replacement, 30)
			if tc.change != nil {
				tc.change(original, replacement)
			}
			original.OwnerReferences = controllertest.OwnedBy(Kind, "m")
			others := []*corev1.Pod{pod("p", "a", 1), pod("q", "b", 2)}
			all := []client.Object{original, others[0], others[1]}
			for _, zone := range []string{"a", "b", "c"} {
				all = append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{"zone": zone}}})
			}
			o := &objects{move: &placementv1alpha1.Move{ObjectMeta: controllertest.Named("m"), Spec: placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDisconnect, Keep: tc.keep}}, pod: original, set: set}
			o.pods = []corev1.Pod{*others[0], *others[1]}
			if tc.replacement != "" {
				all = append(all, replacement)
				o.pods = append(o.pods, *replacement)
				o.extra = &o.pods[2]
			}
			if tc.other != nil {
				all = append(all, tc.other)
			}
			o.move.Spec.ReplicaSet.UID = "web-1"
			r := &Reconciler{Clock: clocktesting.NewFakeClock(noon), Client: controllertest.Builder(t, all...).Build()}
			got, err := r.replacementStays(t.Context(), o)
			if err != nil || got != tc.want {
				t.Errorf("the replacement stays: %t, %v", got, err)
			}
		})
	}
}

// A pod that has no node is not moved, and nobody asks for its node.
func TestPodWithoutANode(t *testing.T) {
	for _, reason := range []placementv1alpha1.MoveReason{placementv1alpha1.MoveDrain, placementv1alpha1.MoveDisconnect} {
		o := &objects{
			pod: &corev1.Pod{}, set: &appsv1.ReplicaSet{}, deployment: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}},
			move: &placementv1alpha1.Move{Spec: placementv1alpha1.MoveSpec{Reason: reason, Avoid: &placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname}}},
		}
		o.move.Status.Phase = placementv1alpha1.MoveHandingOver
		api := interceptor.NewClient(controllertest.Builder(t).Build(), interceptor.Funcs{
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
			api := controllertest.Builder(t, node("from", tc.from), node("to", tc.to)).Build()
			made := metav1.NewTime(noon)
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
			controllertest.Must(t, o.readAstray(t.Context(), api))
			if o.astray != tc.want {
				t.Errorf("it is astray: %t", o.astray)
			}
		})
	}
}
