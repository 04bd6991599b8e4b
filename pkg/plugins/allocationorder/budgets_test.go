// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A budget that lets one pod go lets a second preemptor have no other one before its status tells of the first, unless another is ready meanwhile.
// A pod that is not ready takes nothing from it.
func TestBudgetsWhoseStatusIsOld(t *testing.T) {
	for name, tc := range map[string]struct {
		unready bool
		then    func(r *rig, dev2 *corev1.Pod) (pods []*corev1.Pod)
		want    string
	}{
		"nobody has seen it yet": {then: nil, want: "qa"},
		"it terminates": {then: func(r *rig, dev2 *corev1.Pod) []*corev1.Pod {
			dev2.DeletionTimestamp, dev2.Finalizers = new(metav1.Now()), []string{"x/y"}
			return r.pods
		}, want: "qa"},
		"it is gone": {then: func(r *rig, dev2 *corev1.Pod) []*corev1.Pod {
			return slices.DeleteFunc(r.pods, func(p *corev1.Pod) bool { return p == dev2 })
		}, want: "qa"},
		"another one is ready": {then: func(r *rig, _ *corev1.Pod) []*corev1.Pod {
			r.node("n4", 2)
			r.pod("dev3", "dev", 2, "n4", ready)
			return r.pods
		}, want: "dev3"},
		"it was not ready": {unready: true, then: nil, want: "dev1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.allocation("prod", 4)
			r.allocation("qa", 1)
			r.allocation("dev", 0)
			for _, node := range []string{"n1", "n2", "n3"} {
				r.node(node, 2)
			}
			r.pod("qa", "qa", 2, "n1", ready)
			r.pod("dev1", "dev", 2, "n2", ready)
			dev2 := r.pod("dev2", "dev", 2, "n3")
			if !tc.unready {
				ready(dev2)
			}
			r.budget("dev", 1)
			first, second := r.pod("first", "prod", 2, "", priority("100")), r.pod("second", "prod", 2, "", priority("100"))
			r.start().wantEvicted(first, "n3", "dev2")
			r.nominate(first, "n3")
			if tc.then != nil {
				r.again(tc.then(r, dev2)...)
			}
			on := map[string]string{"qa": "n1", "dev1": "n2", "dev3": "n4"}
			r.wantEvicted(second, on[tc.want], tc.want)
		})
	}
}
