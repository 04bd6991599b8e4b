// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package notices

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
)

func TestGivenOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	n := New(recorder)
	long := strings.Repeat("x", maxNote)
	for _, tc := range []struct {
		uid          types.UID
		reason, text string
		want         string // "" for no Event
	}{
		{"1", "A", "text", "Warning A text"},
		{"1", "A", "text", ""},
		{"2", "A", "text", "Warning A text"},
		{"1", "B", "text", "Warning B text"},
		{"1", "A", "100% of it", "Warning A 100% of it"},
		{"1", "A", long, "Warning A " + long},
		{"1", "A", long + "y", "Warning A " + long[:maxNote-len("…")] + "…"},
		{"1", "A", long + "z", ""},
	} {
		n.Give(&corev1.ObjectReference{UID: tc.uid}, corev1.EventTypeWarning, tc.reason, tc.text)
		got := ""
		if len(recorder.Events) > 0 {
			got = <-recorder.Events
		}
		if got != tc.want {
			t.Errorf("of %s, %s %q: the Event is %q, want %q", tc.uid, tc.reason, tc.text, got, tc.want)
		}
	}
}

// Where a framework has no recorder, nobody is told.
func TestWithoutRecorder(*testing.T) {
	New(nil).Give(&corev1.ObjectReference{}, corev1.EventTypeWarning, "A", "text")
}
