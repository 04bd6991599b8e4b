// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeplugins_test

import "testing"

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
	pl, c := newCluster(t, before, waits, other, placed, plain, runtimeClass("kata", "kata-qemu"), runtimeClass("wasm", "spin"))
	c.WantWoken(t, pl, waits, before, after)
}
