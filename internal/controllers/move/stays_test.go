// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Of a pod that is back and its replacement the one stays that the strategy says, where three pods are on zones of one node each.
func TestReplacementStays(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "web-1"}}
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := func(name, node string, minutes int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute)),
			Annotations:     map[string]string{clusterview.PlacedByAnnotation: "profile; spread=zone"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		}}
		p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.CreationTimestamp}}}}
		return p
	}
	moved := func(phase placementv1alpha1.MovePhase, minutes int) *placementv1alpha1.Move {
		return &placementv1alpha1.Move{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", UID: "other", CreationTimestamp: metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute))},
			Spec:       placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDisconnect, ReplicaSet: placementv1alpha1.ObjectReference{Name: "web-1", UID: "web-1"}},
			Status:     placementv1alpha1.MoveStatus{Phase: phase},
		}
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
			o.Status.ContainerStatuses[0].State.Running.StartedAt.Time = start.Add(time.Hour)
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
			original.OwnerReferences[0] = metav1.OwnerReference{Kind: Kind, Name: "m", UID: "m", Controller: new(true)}
			others := []*corev1.Pod{pod("p", "a", 1), pod("q", "b", 2)}
			all := []client.Object{original, others[0], others[1]}
			for _, zone := range []string{"a", "b", "c"} {
				all = append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{"zone": zone}}})
			}
			o := &objects{move: &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m"}, Spec: placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDisconnect, Keep: tc.keep}}, pod: original, set: set}
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
			r := &Reconciler{Clock: clocktesting.NewFakeClock(start), Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()}
			got, err := r.replacementStays(t.Context(), o)
			if err != nil || got != tc.want {
				t.Errorf("the replacement stays: %t, %v", got, err)
			}
		})
	}
}
