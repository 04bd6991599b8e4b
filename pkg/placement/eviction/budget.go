// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import "slices"

// split divides pods that are to go into those that a disruption budget does not let go, after those before them have gone, and the
// others. A pod that violates one budget takes nothing from the others, as in kube-scheduler.
func (w *walk) split(pods []int) (violating, others []int) {
	left := slices.Clone(w.allowed)
	for _, i := range pods {
		if slices.ContainsFunc(w.tail[i].Budgets, func(b int) bool { return left[b] <= 0 }) {
			violating = append(violating, i)
			continue
		}
		for _, b := range w.tail[i].Budgets {
			left[b]--
		}
		others = append(others, i)
	}
	return violating, others
}
