// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Fair puts candidates in the order in which they may have Moves. Pods that were moved before come after those that were not, and of
// these the namespaces take turns, those with the fewest Moves under way first; inside a namespace the order stays. A namespace
// whose replacements never become ready would hold all Moves otherwise, again and again, and nobody else's node could be drained.
func Fair[T any](candidates []T, pod func(T) *corev1.Pod, moves []placementv1alpha1.Move, histories map[string]History) {
	type turn struct{ before, n int }
	turns := make(map[*corev1.Pod]turn, len(candidates))
	next := make(map[string]int) // by namespace
	for i := range moves {
		if Busy(&moves[i]) {
			next[moves[i].Namespace]++
		}
	}
	before := func(p *corev1.Pod) int { return histories[string(p.UID)].N }
	slices.SortStableFunc(candidates, func(a, b T) int { return cmp.Compare(before(pod(a)), before(pod(b))) })
	for _, one := range candidates {
		p := pod(one)
		turns[p] = turn{before(p), next[p.Namespace]}
		next[p.Namespace]++
	}
	slices.SortStableFunc(candidates, func(a, b T) int {
		x, y := turns[pod(a)], turns[pod(b)]
		return cmp.Or(cmp.Compare(x.before, y.before), cmp.Compare(x.n, y.n))
	})
}
