// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"cmp"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Turns is the order in which candidates may have Moves: namespaces take turns, those with the fewest Moves under way first. Inside a
// namespace, pods that were moved before come last. A namespace whose replacements never become ready would hold all Moves otherwise,
// again and again, and nobody else's node could be drained.
type Turns[T any] struct {
	pod func(T) *corev1.Pod
	// left are the candidates of each namespace that have not had their turn; moves are the Moves of each, with those made since.
	left       map[string][]T
	namespaces []string
	moves      map[string]int
}

// NewTurns returns the turns of candidates. Inside a namespace, those that were moved as often stay in their order.
func NewTurns[T any](candidates []T, pod func(T) *corev1.Pod, moves []placementv1alpha1.Move, histories map[string]History) *Turns[T] {
	t := &Turns[T]{pod: pod, left: make(map[string][]T), moves: make(map[string]int)}
	for i := range moves {
		if Busy(&moves[i]) {
			t.moves[moves[i].Namespace]++
		}
	}
	for _, one := range candidates {
		namespace := pod(one).Namespace
		if len(t.left[namespace]) == 0 {
			t.namespaces = append(t.namespaces, namespace)
		}
		t.left[namespace] = append(t.left[namespace], one)
	}
	slices.Sort(t.namespaces)
	before := func(one T) int { return histories[string(pod(one).UID)].N }
	for _, left := range t.left {
		slices.SortStableFunc(left, func(a, b T) int { return cmp.Compare(before(a), before(b)) })
	}
	return t
}

// All returns the candidates in turn. A candidate that gets no Move costs its namespace no turn.
func (t *Turns[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for len(t.namespaces) > 0 {
			next := slices.MinFunc(t.namespaces, func(a, b string) int { return cmp.Compare(t.moves[a], t.moves[b]) })
			one := t.left[next][0]
			if t.left[next] = t.left[next][1:]; len(t.left[next]) == 0 {
				t.namespaces = slices.DeleteFunc(t.namespaces, func(n string) bool { return n == next })
			}
			if !yield(one) {
				return
			}
		}
	}
}

// Made notes that a candidate has got a Move.
func (t *Turns[T]) Made(one T) { t.moves[t.pod(one).Namespace]++ }
