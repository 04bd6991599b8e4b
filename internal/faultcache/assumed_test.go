// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// leave has the informers show that a pod was deleted.
func (r *rig) leave(p *corev1.Pod) {
	r.Helper()
	r.must(r.pods.GetIndexer().Delete(p))
	gone := p.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: r.clock.Now()}
	r.onPodGone(gone)
}

// What was assumed of a pod does not outlive that it is seen to be otherwise: its node
// would be on trial for ever.
func TestRegression_AssumedOtherwise(t *testing.T) {
	for name, otherwise := range map[string]func(*corev1.Pod){
		"bound elsewhere":     func(p *corev1.Pod) { p.Spec.NodeName = "n2" },
		"of another revision": func(p *corev1.Pod) { p.Labels["controller-revision-hash"] = "2" },
		"of an owner that is not seen": func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind, p.OwnerReferences[0].UID = "ReplicaSet", "unseen"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, without(options()))
			r.reject("web", "n1", 1)
			a := pod("a", "").Obj()
			r.Assume(a, "n1")
			r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
			b := a.DeepCopy()
			b.Spec.NodeName = "n1"
			otherwise(b)
			r.see(b)
			r.Unassume(a)
			r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
			r.leave(b)
			r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
			r.record("n2", placement.Record{})
		})
	}
}

// A pod may change its labels at any time.
func TestRegression_SeenAndRelabelled(t *testing.T) {
	r := newRig(t, without(options()))
	r.reject("web", "n1", 1)
	a := pod("a", "n1").Obj()
	r.see(a)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1, Unproven: 1})
	b := a.DeepCopy()
	b.Labels["controller-revision-hash"] = "2"
	r.see(b)
	r.record("n1", placement.Record{Failures: 1, Unforgiven: 1})
}

// A pod whose ReplicaSet is not seen yet is on trial where it was assumed, until it is
// gone.
func TestAssumedAndProvisional(t *testing.T) {
	r := newRig(t, without(options()))
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "uid"}}
	sets := r.Informers.Apps().V1().ReplicaSets().Informer().GetIndexer()
	r.must(sets.Add(rs))
	ours := func(p *corev1.Pod) *corev1.Pod {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid", Controller: new(true)}}
		p.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "1"}
		return p
	}
	r.see(ours(r.rejected(pod("first", "n1"))))
	a := ours(pod("a", "").Obj())
	id := r.Identify(a)
	unproven := func(want int64) {
		t.Helper()
		if got := r.For(a).Record(id, "n1").Unproven; got != want {
			t.Errorf("%d are unproven, want %d", got, want)
		}
	}
	r.Assume(a, "n1")
	unproven(1)
	r.must(sets.Delete(rs))
	b := a.DeepCopy()
	b.Spec.NodeName = "n1"
	r.see(b)
	unproven(1)
	r.leave(b)
	unproven(0)
	if len(r.assumed) > 0 {
		t.Error("it is assumed for ever")
	}
}
