// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A warning of a pod whose ReplicaSet is not seen yet is told when it is.
func TestRegression_WarningsBeforeReplicaSets(t *testing.T) {
	r := newRig(t, without(options()))
	ours := func(name string) *corev1.Pod {
		p := pod(name, "n1").Obj()
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid", Controller: new(true)}}
		p.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "1"}
		return p
	}
	warn := func(p *corev1.Pod, reason string) {
		r.onWarning(&corev1.Event{
			Type: corev1.EventTypeWarning, Reason: reason, Source: corev1.EventSource{Component: "kubelet", Host: "n1"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: p.Name, UID: p.UID},
			FirstTimestamp: metav1.Time{Time: r.clock.Now()},
		})
	}
	hangs, gone := ours("hangs"), ours("gone")
	r.see(hangs)
	r.see(gone)
	for range 2 {
		warn(hangs, "FailedCreatePodSandBox")
	}
	warn(hangs, "FailedMount")
	warn(gone, "FailedMount")
	if r.Known(hangs) {
		t.Error("it is told of a workload that is not known")
	}
	r.leave(gone)
	r.pass(sweeping)
	if len(r.pending) != 1 {
		t.Errorf("of %d pods something is remembered, want 1", len(r.pending))
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "uid"}}
	rs.Spec.Template.Labels = hangs.Labels
	r.must(r.Informers.Apps().V1().ReplicaSets().Informer().GetIndexer().Add(rs))
	r.onReplicaSet(nil, rs)
	if got := r.For(hangs).Record(r.Identify(hangs), "n1"); got.Unforgiven != 2 || got.Unproven != 0 {
		t.Errorf("the record is %+v", got)
	}
	if len(r.pending) > 0 {
		t.Error("what was told is remembered")
	}
}
