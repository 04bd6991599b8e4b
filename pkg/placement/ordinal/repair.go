// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ordinal

// Repair returns the numbers that the pods of a branch should have for none to be missing, given those that they have, 0 for none: 1 to as many
// as there are. As few as can be get another number. Those come in the order in which the pods are given: list the oldest first, and
// the latest goes first.
func Repair(numbers []int32) []int32 {
	repaired, taken := make([]int32, len(numbers)), make([]bool, len(numbers)+1)
	for i, n := range numbers {
		if n >= 1 && int(n) <= len(numbers) && !taken[n] {
			repaired[i], taken[n] = n, true
		}
	}
	free := int32(1)
	for i := range repaired {
		if repaired[i] > 0 {
			continue
		}
		for taken[free] {
			free++
		}
		repaired[i], taken[free] = free, true
	}
	return repaired
}
