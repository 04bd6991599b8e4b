// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// Two tasks of a global service are confirmed on the first node, and the task that has
// its choice takes the second.
func TestVector_2_8_G1(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for _, name := range []string{"n1", "n2"} {
		r.cache.AddNode(r.logger, st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "4"}).Obj())
	}
	for i := range 2 {
		name := fmt.Sprint("global-", i)
		r.must(r.cache.AddPod(r.logger, st.MakePod().Namespace("ns").Name(name).UID(name).OwnerReference("ds", daemonSet).Container("image").Node("n1").Obj()))
	}
	if got := r.place(webPod("p", "").Obj()); got != "n2" {
		t.Errorf("placed on %s", got)
	}
}
