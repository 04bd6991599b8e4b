// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package sampling

// BasisPoints is a share in hundredths of a percent, from 1 to All.
type BasisPoints int

// All is the whole.
const All BasisPoints = 10000

// Valid reports whether it is a share that a sample can have.
func (b BasisPoints) Valid() bool { return 1 <= b && b <= All }

// OfGroups is how many of n groups are in a sample: the share of them, rounded up, and at least one (vector VV1).
func (b BasisPoints) OfGroups(n int) int {
	return min(n, max(1, (n*int(b)+int(All)-1)/int(All)))
}

// OfNodes is how many of n nodes of a group are wanted: the share of them, rounded down, and at least
// one (vector VV2).
func (b BasisPoints) OfNodes(n int) int {
	return min(n, max(1, n*int(b)/int(All)))
}
