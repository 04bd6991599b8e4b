// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func named(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := pods(1, "web")[0]
	pod.Name, pod.Spec.SchedulerName = name, "espalier-scheduler"
	change(&pod)
	return &pod
}

func same(*corev1.Pod) {}

// daemon makes a pod one of a DaemonSet, beside an owner that does not control it.
func daemon(p *corev1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "Fleet", Name: "f"},
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", Controller: &yes},
	}
}

func TestReconcile(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, placementv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a, elsewhere := made("a", "web", 0), made("a", "web", 0)
	elsewhere.Namespace = "elsewhere"
	now := metav1.Now()
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&placementv1alpha1.PlacementPolicy{}, &placementv1alpha1.ClusterPlacementPolicy{}).WithObjects(
		&a, &elsewhere,
		named("pending", same), named("running", func(p *corev1.Pod) { p.Spec.NodeName = "n" }),
		named("other-scheduler", func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }),
		named("succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		named("failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		named("leaving", func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &now, []string{"x/y"} }),
		named("daemon", daemon),
		named("far", func(p *corev1.Pod) { p.Namespace = "third" }),
	).Build()
	r := &Reconciler{Client: c, Schedulers: []string{"espalier-scheduler"}, Clock: clocktesting.NewFakePassiveClock(noon.Time)}
	read := func(namespace string) *placementv1alpha1.PlacementPolicy {
		var p placementv1alpha1.PlacementPolicy
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, &p); err != nil {
			t.Fatal(err)
		}
		return &p
	}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns"}}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	first := read("ns")
	if got := brief(first.Status); got != "2 2 Valid! NoConflict InForce!" || first.Status.ObservedGeneration != 3 {
		t.Errorf("got %q of generation %d", got, first.Status.ObservedGeneration)
	}
	if got := read("elsewhere").Status; len(got.Conditions) > 0 {
		t.Errorf("the other namespace was written to: %v", got)
	}
	r.Clock = clocktesting.NewFakePassiveClock(noon.Add(time.Hour))
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if again := read("ns"); again.ResourceVersion != first.ResourceVersion {
		t.Error("a status that says the same was written again")
	}
}

func TestTrimKeepsWhatAStatusIsComputedFrom(t *testing.T) {
	full := named("p", func(p *corev1.Pod) {
		p.Annotations = map[string]string{clusterview.PlacementAnnotation: "spread=zone", "big": "text"}
		p.Spec.Containers = []corev1.Container{{Name: "c"}}
	})
	out, err := Trim(full)
	trimmed, ok := out.(*corev1.Pod)
	if err != nil || !ok {
		t.Fatalf("got %T, %v", out, err)
	}
	policies := []placementv1alpha1.PlacementPolicy{made("a", "web", 0)}
	before, after := computed(policies, []corev1.Pod{*full}, noon), computed(policies, []corev1.Pod{*trimmed}, noon)
	if brief(before[0]) != brief(after[0]) || !counts(trimmed, []string{"espalier-scheduler"}) {
		t.Errorf("got %q, want %q", brief(after[0]), brief(before[0]))
	}
	kept, err := Trim(named("d", daemon))
	if pod, ok := kept.(*corev1.Pod); err != nil || !ok || counts(pod, []string{"espalier-scheduler"}) || len(pod.OwnerReferences) != 1 {
		t.Errorf("a DaemonSet's pod becomes %v, %v", kept, err)
	}
	if len(trimmed.Spec.Containers) > 0 || len(trimmed.Annotations) != 1 {
		t.Errorf("it keeps %v", trimmed)
	}
	left := map[string]string{clusterview.CostBeforeMoveAnnotation: "-3", clusterview.RemovedForMoveAnnotation: "m", clusterview.MadeEvictableAnnotation: "true"}
	kept, err = Trim(named("m", func(p *corev1.Pod) { p.Annotations = left }))
	if pod, ok := kept.(*corev1.Pod); err != nil || !ok || !maps.Equal(pod.Annotations, left) {
		t.Errorf("of what a Move may leave it keeps %v, %v", kept, err)
	}
	kept, err = Trim(named("v", func(p *corev1.Pod) {
		p.CreationTimestamp = noon
		p.Spec.Volumes = []corev1.Volume{{Name: "e"}, {Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}))
	if pod, ok := kept.(*corev1.Pod); err != nil || !ok || len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data" || !pod.CreationTimestamp.Equal(&noon) {
		t.Errorf("of its claims and its age it keeps %v, %v", kept, err)
	}
	kept, err = Trim(named("r", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: noon, Message: "long"}}
	}))
	if pod, ok := kept.(*corev1.Pod); err != nil || !ok || len(pod.Spec.Tolerations) != 1 || len(pod.Status.Conditions) != 1 ||
		pod.Status.Conditions[0] != (corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: noon}) {
		t.Errorf("of what it tolerates, and whether it is ready, it keeps %v, %v", kept, err)
	}
}

func TestPodMatters(t *testing.T) {
	r := &Reconciler{Schedulers: []string{"espalier-scheduler"}}
	matters := r.podMatters()
	foreign := func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }
	for name, tc := range map[string]struct {
		before, after func(*corev1.Pod)
		want          bool
	}{
		"nothing":                {same, same, false},
		"bound":                  {same, func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		"ended":                  {same, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, true},
		"label":                  {same, func(p *corev1.Pod) { p.Labels["x"] = "y" }, true},
		"annotation":             {same, func(p *corev1.Pod) { p.Annotations["x"] = "y" }, true},
		"adopted by a DaemonSet": {same, daemon, true},
		"label, but not ours":    {foreign, func(p *corev1.Pod) { foreign(p); p.Labels["x"] = "y" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matters.Update(event.UpdateEvent{ObjectOld: named("p", tc.before), ObjectNew: named("p", tc.after)}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if !matters.Create(event.CreateEvent{Object: named("p", same)}) || matters.Delete(event.DeleteEvent{Object: named("p", foreign)}) {
		t.Error("the pods that come and go are not those of the schedulers")
	}
}
