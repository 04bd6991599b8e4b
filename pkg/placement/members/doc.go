// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members has sets of the members of a group of the spread tree, which are branches or nodes, and finds the one with the lowest
// load in a set. A member is a number from 0, its slot in the group.
package members

// None is the number of no member.
const None = int32(-1)
