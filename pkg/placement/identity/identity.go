// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity numbers the pods of a group of which so many are to run: 0, 1 and so on, up to one less than their number. The
// others stand by without a number, and take one that is given back.
package identity

// Set are the identities that are held.
type Set map[int]bool

// Lowest returns the lowest identity that is free in a group of some size. It is false if there is none (TV23).
func Lowest(size int, held Set) (int, bool) {
	for id := range size {
		if !held[id] {
			return id, true
		}
	}
	return 0, false
}

// Free returns how many identities are free in a group of some size.
func Free(size int, held Set) int {
	free := size
	for id, is := range held {
		if is && Valid(size, id) {
			free--
		}
	}
	return free
}

// Valid reports whether a group of some size has an identity. A pod that holds one which it does not have must not run: the group has
// become smaller (TV23).
func Valid(size, id int) bool { return id >= 0 && id < size }
