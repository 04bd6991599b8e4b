// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// An address that is attached to a node that runs leaves it ready, and the framework
// has no event. The pod that is woken must fit at once, although the scheduler's
// cache may not have seen the address.
func TestRegression_NewAddressOfAReadyNodeWakesNobody(t *testing.T) {
	waits := asking("node.ip == 10.0.0.1").Name("waits").UID("waits").Obj()
	before := st.MakeNode().Name("n").Obj()
	after := before.DeepCopy()
	after.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	pl, c := newCluster(t, before, waits,
		asking("node.ip == 10.0.0.2").Name("elsewhere").UID("elsewhere").Obj(),
		asking("node.ip == 10.0.0.1").Name("placed").UID("placed").Node("n").Obj(),
		asking("node.id == n").Name("other").UID("other").Obj(),
		asking("role == worker").Name("malformed").UID("malformed").Obj())
	c.WantWoken(t, pl, waits, before, after)
}
