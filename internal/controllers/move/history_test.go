// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

func TestHistories(t *testing.T) {
	ended := func(phase placementv1alpha1.MovePhase, ago time.Duration) placementv1alpha1.Move {
		m := placementv1alpha1.Move{Spec: placementv1alpha1.MoveSpec{Pod: placementv1alpha1.ObjectReference{UID: "pod"}}, Status: placementv1alpha1.MoveStatus{Phase: phase}}
		if phase.Ended() {
			m.Status.EndedAt = &metav1.Time{Time: noon.Add(-ago)}
		}
		return m
	}
	back := ended(placementv1alpha1.MoveUndone, 0)
	back.Spec.Reason = placementv1alpha1.MoveDisconnect
	for name, tc := range map[string]struct {
		moves []placementv1alpha1.Move
		waits bool
	}{
		"none":               {nil, false},
		"being moved":        {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveUndone, time.Hour), ended("", 0)}, true},
		"handed back":        {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveUndone, 9*time.Minute)}, true},
		"handed back before": {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveUndone, 10*time.Minute)}, false},
		"is back":            {[]placementv1alpha1.Move{back}, false},
		"not begun":          {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveFailed, 59*time.Second)}, true},
		"not begun before":   {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveFailed, time.Minute)}, false},
		// By name, as the API server lists them, the tenth one comes before the second.
		"not begun ten times": {[]placementv1alpha1.Move{ended(placementv1alpha1.MoveFailed, time.Minute), ended(placementv1alpha1.MoveFailed, 5*time.Minute)}, false},
	} {
		if h := Histories(tc.moves)["pod"]; h.Waits(noon) != tc.waits || h.N != len(tc.moves) {
			t.Errorf("%s: %+v: waits %t", name, h, h.Waits(noon))
		}
	}
}

// Moves that have ended go after a while, the first ones first. The next one has a name that none has.
func TestNumbersOfMoves(t *testing.T) {
	pod := podOf("web-1-abc", "ReplicaSet", "web-1")
	set, deployment := &appsv1.ReplicaSet{}, &appsv1.Deployment{}
	var moves []placementv1alpha1.Move
	made := func(want string) {
		t.Helper()
		m := New(pod, set, deployment, placementv1alpha1.MoveDisconnect, Histories(moves)["web-1-abc"])
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

// The deadline leaves a replacement the time for which its ReplicaSet wants pods to have been ready, as far as the API server takes it.
func TestDeadlines(t *testing.T) {
	for minReady, want := range map[int32]int32{0: 600, 30: 630, 900: 1500, math.MaxInt32: 86400} {
		set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{MinReadySeconds: minReady}}
		if m := New(&corev1.Pod{}, set, &appsv1.Deployment{}, placementv1alpha1.MoveDrain, History{}); m.Spec.DeadlineSeconds != want {
			t.Errorf("with minReadySeconds %d it is %d s, want %d", minReady, m.Spec.DeadlineSeconds, want)
		}
	}
}

// A controller that has counted the Moves makes none after another one has: its bounds would not hold.
func TestMovesAreMadeByACount(t *testing.T) {
	api := controllertest.Builder(t).Build()
	counts := []*Count{NewCount(), NewCount()}
	for _, step := range []struct {
		name        string
		by          int
		stale, want bool
	}{{"a", 0, false, true}, {"b", 0, false, true}, {"b", 0, false, false}, {"c", 1, true, false}, {"c", 2, false, true}, {"d", 0, true, false}} {
		if step.by == len(counts) {
			counts = append(counts, NewCount())
		}
		move := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: step.name}}
		if stale := counts[step.by].Stale(); stale != step.stale {
			t.Errorf("%s: stale %t", step.name, stale)
		}
		if made, err := counts[step.by].Make(t.Context(), api, move); made != step.want || err != nil {
			t.Errorf("%s: made %t, %v", step.name, made, err)
		}
	}
}

func TestTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		candidates string // namespace/pod
		busy       string // namespaces of Moves under way
		moved      string // pods that were moved before
		refused    string // pods that get no Move
		want       string // those that get one, in order
	}{
		"one namespace":                    {"a/1 a/2 a/3", "", "", "", "a/1 a/2 a/3"},
		"in turn":                          {"a/1 a/2 a/3 b/1 b/2 c/1", "", "", "", "a/1 b/1 c/1 a/2 b/2 a/3"},
		"who has Moves under way is later": {"a/1 a/2 b/1 b/2", "a a", "", "", "b/1 b/2 a/1 a/2"},
		"who was moved before is later":    {"a/1 a/2 b/1 b/2", "", "a/1 b/1", "", "a/2 b/2 a/1 b/1"},
		"who gets none loses no turn":      {"a/1 a/2 a/3 a/4 b/1 b/2", "", "", "a/1 a/2 a/3", "a/4 b/1 b/2"},
		"none":                             {"", "a", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var candidates []*corev1.Pod
			for _, f := range strings.Fields(tc.candidates) {
				namespace, pod, _ := strings.Cut(f, "/")
				candidates = append(candidates, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, UID: types.UID(f)}})
			}
			var moves []placementv1alpha1.Move
			for _, namespace := range strings.Fields(tc.busy) {
				moves = append(moves, placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}})
			}
			histories := make(map[string]History)
			for _, f := range strings.Fields(tc.moved) {
				histories[f] = History{N: 1}
			}
			turns := NewTurns(candidates, func(p *corev1.Pod) *corev1.Pod { return p }, moves, histories)
			var got []string
			for p := range turns.All() {
				if !slices.Contains(strings.Fields(tc.refused), string(p.UID)) {
					turns.Made(p)
					got = append(got, string(p.UID))
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("the order is %q, want %s", got, tc.want)
			}
		})
	}
}
