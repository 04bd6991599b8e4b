// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
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
	pl, client, woken := newCluster(t, before, waits,
		asking("node.ip == 10.0.0.2").Name("elsewhere").UID("elsewhere").Obj(),
		asking("node.ip == 10.0.0.1").Name("placed").UID("placed").Node("n").Obj(),
		asking("node.id == n").Name("other").UID("other").Obj(),
		asking("role == worker").Name("malformed").UID("malformed").Obj())
	info := framework.NewNodeInfo()
	info.SetNode(before)
	fits := func() bool {
		state := framework.NewCycleState()
		if _, status := pl.PreFilter(t.Context(), state, waits, nil); !status.IsSuccess() {
			t.Fatal(status)
		}
		return pl.Filter(t.Context(), state, waits, info).IsSuccess()
	}
	if fits() {
		t.Fatal("it fits before the node has the address")
	}
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), after, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-woken:
		if name != "waits" || len(woken) > 0 {
			t.Errorf("%q is woken, and %d more", name, len(woken))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody is woken")
	}
	if !fits() {
		t.Error("it is awake, and refused for what the cache has of the node")
	}
}
