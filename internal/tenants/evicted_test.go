// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Who made way for a pod is known, and where, until the pod has its node, is gone or in no order, or was tried in vain and none of them is there
// any more. As long as one is, their node may be closed for a while.
func TestEvicted(t *testing.T) {
	for name, ends := range map[string]func(r *rig, pod *corev1.Pod){
		"it is placed": func(r *rig, pod *corev1.Pod) {
			claims, _ := r.Claims()
			r.Reserve(pod, claims, r.allocations["a"])
		},
		"it is gone": func(r *rig, pod *corev1.Pod) { r.forget(pod) },
		"they are gone": func(r *rig, _ *corev1.Pod) {
			for _, name := range []string{"near", "far"} {
				r.must(r.pods.Delete(r.pod(name, "a")))
			}
			r.Compute()
		},
		"it is in no order any more": func(r *rig, pod *corev1.Pod) {
			r.must(r.pods.Delete(pod))
			r.Compute()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.allocation("a")
			pod, near, far := r.pod("pod", "a"), r.pod("near", "a"), r.pod("far", "a")
			near.Spec.NodeName, far.Spec.NodeName = "n", "far"
			r.Compute()
			r.MadeWay(1, pod, "n", []*corev1.Pod{near, far})
			its, waits := r.WaitsFor(pod)
			if !waits || !r.Evicting() || !its.Pods["near"] || !its.Pods["far"] || !slices.Equal(its.Nodes, []string{"n", "far"}) {
				t.Errorf("it waits for %+v, %t", its, waits)
			}
			if !r.HasMadeWay(1, far, pod) || r.HasMadeWay(1, pod, far) || r.HasMadeWay(2, far, pod) {
				t.Error("it is not known who made way for whom")
			}
			order, _ := r.Order()
			at, _ := order.Place(pod)
			r.FoundNoPlace(at, pod)
			r.Compute()
			if _, waits := r.WaitsFor(pod); !waits || !r.Evicting() {
				t.Error("it waits for nobody after it was tried again")
			}
			ends(r, pod)
			if its, waits := r.WaitsFor(pod); waits || r.Evicting() {
				t.Errorf("it waits for %+v, and somebody does: %t", its, r.Evicting())
			}
		})
	}
}

// A pod that was deleted is known as such as long as it may be in the cache.
func TestDeleted(t *testing.T) {
	r := newRig(t)
	r.allocation("a")
	pod, other := r.pod("pod", "a"), r.pod("other", "a")
	r.NoteDeleted(pod.UID)
	r.Compute()
	if !r.WasDeleted(pod.UID) || r.WasDeleted(other.UID) {
		t.Error("it is not known which pod was deleted")
	}
	r.must(r.pods.Delete(pod))
	r.Compute()
	if r.WasDeleted(pod.UID) {
		t.Error("a pod that is gone is remembered")
	}
}
