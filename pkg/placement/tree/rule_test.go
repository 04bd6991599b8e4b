// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"reflect"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// A rule that changes costs nothing where there is no record for it to count: pods of one tally may come under two rules in turn.
func TestRuleWithoutRecords(t *testing.T) {
	nodes := NewNodes(2)
	a, b := nodes.Set("a", Facts{}), nodes.Set("b", Facts{})
	tally := NewTally(NewTopology(nodes, nil, nil))
	tally.SetPods(a, 1, 1)
	entries := func() uintptr { return reflect.ValueOf(tally.pods).Pointer() }
	before := entries()
	for threshold := range 5 {
		tally.SetRule(placement.Faults{Threshold: threshold + 1})
	}
	if entries() != before {
		t.Error("all entries were made anew without a record")
	}
	tally.SetRecord(b, placement.Record{Failures: 3})
	tally.SetRule(placement.Faults{Threshold: 2})
	if entries() == before {
		t.Error("a record counts as under the rule before")
	}
	if revision, _ := tally.Pods(a); revision != 1 {
		t.Errorf("%d pods are left", revision)
	}
	if err := tally.validate(); err != nil {
		t.Error(err)
	}
}
