// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ordinal

// Repair returns a number for each pod of a branch, so that the numbers are 1 to the number of pods, each used once.
// It is given the numbers that the pods have now, 0 for none. As few pods as possible get another number. These pods
// get the free numbers in ascending order. List the oldest pod first, so that the newest of them is removed first.
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
