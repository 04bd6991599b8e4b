// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"testing"

	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// The half of SwarmKit's vector that is about preassigned tasks: as often as they fail on the node
// that was chosen for them, nothing is held against it, while tasks that were placed mark theirs.
func TestVector_2_5_F1(t *testing.T) {
	r := newRig(t, without(options()))
	r.activate()
	for round := range 8 {
		pinned := podOfWorkload("agent", fmt.Sprint("agent-", round), "n1").NodeAffinityIn("metadata.name", []string{"n1"}, st.NodeSelectorTypeMatchFields)
		r.see(r.rejected(pinned))
		r.reject("web", "n2", 1)
		if got := r.For(pinned.Obj()).Record(r.Identify(pinned.Obj()), "n1"); got != (placement.Record{}) {
			t.Errorf("round %d: %+v is held against the node of the preassigned pods", round, got)
		}
		r.record("n2", placement.Record{Failures: round + 1, Unforgiven: round + 1})
	}
	r.pass(r.options.ProvenAfter)
	marks := r.ledger.Marks()
	if len(marks) != 1 || marks[0].Node != "n2" {
		t.Errorf("marked are %v, want n2 for the pods that were placed, alone", marks)
	}
}
