// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

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
