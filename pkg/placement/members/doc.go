// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members is which members of a group are meant, and which of them has the lowest load: sets of
// numbers from 0, a bit each, and loads that are searched along them.
package members

// None is the number of no member.
const None = int32(-1)
