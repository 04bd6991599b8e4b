// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

func TestHistories(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ended := func(phase placementv1alpha1.MovePhase, ago time.Duration) placementv1alpha1.Move {
		m := placementv1alpha1.Move{Spec: placementv1alpha1.MoveSpec{Pod: placementv1alpha1.ObjectReference{UID: "pod"}}, Status: placementv1alpha1.MoveStatus{Phase: phase}}
		if phase.Ended() {
			m.Status.EndedAt = &metav1.Time{Time: now.Add(-ago)}
		}
		return m
	}
	for name, tc := range map[string]struct {
		moves []placementv1alpha1.Move
		waits bool
	}{
		"none":               {nil, false},
		"being moved":        {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveUndone, time.Hour), ended("", 0)}, true},
		"handed back":        {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveUndone, 9*time.Minute)}, true},
		"handed back before": {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveUndone, 10*time.Minute)}, false},
		"not begun":          {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveFailed, 59*time.Second)}, true},
		"not begun before":   {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveFailed, time.Minute)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if h := Histories(tc.moves)["pod"]; h.Waits(now) != tc.waits || h.N != len(tc.moves) {
				t.Errorf("%+v: waits %t", h, h.Waits(now))
			}
		})
	}
}
