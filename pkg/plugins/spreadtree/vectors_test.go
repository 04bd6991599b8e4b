// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// Two tasks of a global service are confirmed on the first node, and the task that has
// its choice takes the second.
func TestVector_2_8_G1(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("n1")
	r.join("n2")
	for i := range 2 {
		name := fmt.Sprint("global-", i)
		r.must(r.cache.AddPod(r.logger, st.MakePod().Namespace("ns").Name(name).UID(name).OwnerReference("ds", daemonSet).Node("n1").Obj()))
	}
	if got := r.place(webPod("p", "").Obj()); got != "n2" {
		t.Errorf("placed on %s", got)
	}
}
