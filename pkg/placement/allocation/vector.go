// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import "math"

// Vector is an amount of each of some resources. All vectors of an order are of the same resources, in the same order and in the
// same units. None is negative. A shorter one has none of the resources that it lacks.
type Vector []int64

// At returns the amount of a resource.
func (v Vector) At(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

// Plus returns the sum of two vectors. An amount that is too large for its type stays the largest.
func (v Vector) Plus(o Vector) Vector {
	sum := make(Vector, max(len(v), len(o)))
	for i := range sum {
		sum[i] = add(v.At(i), o.At(i))
	}
	return sum
}

// add is a sum that does not overflow: one that did would be negative, and would put a pod first.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// utilization is how far a demand is beyond what is reserved, in proportion to what is available. Of several resources the largest
// counts: within the reservation that of which most is available, and beyond it the scarcest (TV10).
// Where nothing is available any demand is beyond all bounds, and none is 0.
func utilization(demand, reserved, available Vector) float64 {
	most := math.Inf(-1)
	for i := range max(len(demand), len(reserved), len(available)) {
		beyond, of := demand.At(i)-reserved.At(i), available.At(i)
		u := 0.0
		switch {
		case of > 0:
			u = float64(beyond) / float64(of)
		case beyond > 0:
			u = math.MaxFloat64
		}
		most = max(most, u)
	}
	if math.IsInf(most, -1) {
		return 0 // there are no resources
	}
	return most
}
