// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"testing"
	"time"
)

// An end is ours as long as nobody has changed it.
func TestEndIsBy(t *testing.T) {
	end := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	node := annotated(nil)
	if EndIsBy(node, BySchedule) {
		t.Error("a node without an end has one of the schedule")
	}
	SetEnd(node, BySchedule, end)
	if is, err := EndOf(node); err != nil || !is.Equal(end) || !EndIsBy(node, BySchedule) || EndIsBy(node, ByNodeClaim) {
		t.Errorf("the end is %v, %v: %v", is, err, node.Annotations)
	}
	node.Annotations[ValidUntilAnnotation] = "2027-01-31T12:00:00Z"
	if EndIsBy(node, BySchedule) {
		t.Error("an end that somebody else has changed is of the schedule")
	}
	SetEnd(node, ByNodeClaim, time.Time{})
	if len(node.Annotations) != 0 {
		t.Errorf("a node without an end has %v", node.Annotations)
	}
}

func TestUpSince(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	node := annotated(nil)
	node.Status.NodeInfo.BootID = "first"
	if _, ok := UpSince(node); ok || Rebooted(node) {
		t.Error("a node that was not seen before runs since some time")
	}
	SetUpSince(node, since)
	if is, ok := UpSince(node); !ok || !is.Equal(since) || Rebooted(node) {
		t.Errorf("it runs since %v: %t", is, ok)
	}
	node.Status.NodeInfo.BootID = "second"
	if _, ok := UpSince(node); ok || !Rebooted(node) {
		t.Error("another boot is not seen")
	}
	node.Annotations[UpSinceAnnotation] = "yesterday second"
	if _, ok := UpSince(node); ok || Rebooted(node) {
		t.Error("a time that cannot be read is one, or another boot")
	}
}
