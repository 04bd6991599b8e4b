// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A runtime that restarts quickly reports another handler while its node stays ready, of
// which the framework has no event. The pod that is woken must fit at once, although
// the scheduler's cache may not have seen the change.
func TestRegression_NewHandlerOfAReadyNodeWakesNobody(t *testing.T) {
	waits, other := pod("kata"), pod("wasm")
	waits.Name, waits.UID, other.Name, other.UID = "waits", "waits", "other", "other"
	placed, plain := waits.DeepCopy(), pod("")
	placed.Name, placed.UID, placed.Spec.NodeName = "placed", "placed", "n"
	plain.Name, plain.UID = "plain", "plain"
	before, after := node("n", "runc"), node("n", "runc", "kata-qemu")
	pl, client, woken := newCluster(t, before, waits, other, placed, plain, runtimeClass("kata", "kata-qemu"), runtimeClass("wasm", "spin"))
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
		t.Fatal("it fits before the node has the handler")
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
