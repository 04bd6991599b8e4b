// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
		// By name, as the API server lists them, the tenth one comes before the second.
		"not begun ten times": {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveFailed, time.Minute), ended(placementv1alpha1.MoveFailed, 5*time.Minute)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if h := Histories(tc.moves)["pod"]; h.Waits(now) != tc.waits || h.N != len(tc.moves) {
				t.Errorf("%+v: waits %t", h, h.Waits(now))
			}
		})
	}
}

// Moves that have ended go after a while, the first ones first. The next one has a name that none has.
func TestNumbersOfMoves(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1-abc", UID: "uid"}}
	set, deployment := &appsv1.ReplicaSet{}, &appsv1.Deployment{}
	var moves []placementv1alpha1.Move
	made := func(want string) {
		t.Helper()
		m := New(pod, set, deployment, placementv1alpha1.MoveDisconnect, Histories(moves)["uid"])
		if m.Name != want {
			t.Errorf("the Move is named %s, want %s", m.Name, want)
		}
		moves = append(moves, *m)
	}
	made("web-1-abc")
	made("web-1-abc-1")
	moves = moves[1:]
	made("web-1-abc-2")
	moves = moves[1:]
	made("web-1-abc-3")
	moves = nil
	made("web-1-abc")
}

// Of many Moves each has a replacement of its own, whichever of them looks first.
func TestReplacementsOfTwoBatches(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.Unix(int64(second), 0) }
	pods := []corev1.Pod{}
	for i, second := range []int{0, 31, 31, 46, 46} {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint("p", i)), CreationTimestamp: at(second)}})
	}
	for _, early := range []bool{true, false} {
		left := slices.Clone(pods)
		for _, second := range map[bool][]int{true: {30, 30, 45, 45}, false: {45, 45, 30, 30}}[early] {
			o := &objects{pods: left, move: &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Name: "m", CreationTimestamp: at(second)}, Spec: placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDisconnect}}}
			extra := o.findExtra()
			if extra == nil || extra.CreationTimestamp.Unix() < int64(second) {
				t.Fatalf("a Move of second %d has no replacement among %d pods", second, len(left))
			}
			left = slices.DeleteFunc(slices.Clone(left), func(p corev1.Pod) bool { return p.UID == extra.UID })
		}
	}
}
